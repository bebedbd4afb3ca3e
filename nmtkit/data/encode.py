"""Chunks of text to ids, filtered and dealt to shards; in worker processes, in order."""

import multiprocessing
import signal
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.schema import FilterConfig
from nmtkit.data.corpus import Chunk
from nmtkit.data.counts import PairCounts, SideCounts
from nmtkit.data.filters import REASONS, drop_reason
from nmtkit.data.writer import Sequences
from nmtkit.errors import ResourceError
from nmtkit.text.codec import TextCodec, Vocabulary


@dataclass(frozen=True)
class EncodedChunk:
    """The pairs of a chunk that were kept, by shard, source and target."""

    corpus: int
    counts: PairCounts
    shards: dict[int, tuple[Sequences, Sequences]]


@dataclass(frozen=True)
class Encoder:
    """All that decides what becomes of a chunk.

    Attributes:
        codec: line to ids.
        filters: which pairs are kept.
        id_type: type of the ids, uint16 or uint32.
        seed: what dealing to shards is drawn from.
        num_shards: shards to deal to.
    """

    codec: TextCodec
    filters: FilterConfig
    id_type: str
    seed: int
    num_shards: int

    def encode(self, chunk: Chunk) -> EncodedChunk:
        """Turn a chunk into ids."""
        shards = deal(self.seed, chunk.first, len(chunk.pairs), self.num_shards)
        dropped = dict.fromkeys(REASONS, 0)
        kept: dict[int, tuple[list[list[int]], list[list[int]]]] = {}
        for shard, (source_line, target_line) in zip(shards.tolist(), chunk.pairs, strict=True):
            source = self.codec.encode_source(source_line)
            target = self.codec.encode_target(target_line)
            reason = drop_reason(len(source), len(target), self.filters)
            if reason:
                dropped[reason] += 1
                continue
            sources, targets = kept.setdefault(shard, ([], []))
            sources.append(source)
            targets.append(target)
        packed = {
            shard: (Sequences.pack(sources, self.id_type), Sequences.pack(targets, self.id_type))
            for shard, (sources, targets) in kept.items()
        }
        counts = PairCounts(
            read=len(chunk.pairs),
            dropped=dropped,
            source=_count([source for source, _ in packed.values()], self.codec.source),
            target=_count([target for _, target in packed.values()], self.codec.target),
        )
        return EncodedChunk(chunk.corpus, counts, packed)


def deal(seed: int, first: int, num_pairs: int, num_shards: int) -> NDArray[np.int64]:
    """Deal pairs to shards as a function of their numbers alone.

    Source: SplitMix64, Steele, Lea and Flood 2014, https://doi.org/10.1145/2660193.2660195

    Args:
        seed: the first state.
        first: number of the first pair in all of the training text.
        num_pairs: pairs to deal.
        num_shards: shards there are.

    Returns:
        (num_pairs,) the shard of each pair.
    """
    numbers = np.arange(first + 1, first + num_pairs + 1, dtype=np.uint64)
    state = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return (state % np.uint64(num_shards)).astype(np.int64)


def encode_in_order(
    encoder: Encoder, chunks: Iterable[Chunk], workers: int
) -> Generator[EncodedChunk, None, None]:
    """Encode chunks, and yield them in their order; close the generator to end early.

    Args:
        encoder: does the work.
        chunks: taken as they are needed; a worker holds one at a time.
        workers: processes; at most 1 = none beside this one.

    Raises:
        ResourceError: a worker was killed.
    """
    if workers <= 1:
        yield from map(encoder.encode, chunks)
        return
    rest = iter(chunks)
    first = list(islice(rest, workers))
    busy: deque[_Worker] = deque()
    try:
        for _ in first:
            busy.append(_Worker())
        for worker, chunk in zip(busy, first, strict=True):
            worker.send(encoder)
            worker.send(chunk)
        for chunk in rest:
            encoded = busy[0].receive()
            busy[0].send(chunk)
            busy.rotate(-1)
            yield encoded
        for worker in busy:
            yield worker.receive()
    finally:
        for worker in busy:
            worker.end()


class _Worker:
    """A process that encodes one chunk at a time, and ends when its parent does."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, workers_end = context.Pipe()
        # The encoder is sent later: as an argument, a child that dies early would block the start.
        self._process = context.Process(target=_serve, args=(workers_end,), daemon=True)
        self._process.start()
        # Kept open here, it would hide the worker's death.
        workers_end.close()

    def send(self, message: Encoder | Chunk) -> None:
        try:
            self._connection.send(message)
        except OSError:
            raise self._death() from None

    def receive(self) -> EncodedChunk:
        try:
            encoded: EncodedChunk = self._connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        return encoded

    def end(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def _death(self) -> ResourceError:
        self._process.join()
        return ResourceError(
            f"a worker process ended early (exit code {self._process.exitcode}); if memory is "
            "short, run with fewer workers [--workers]"
        )


def _serve(connection: "Connection[EncodedChunk, Any]") -> None:
    """Receive an encoder, then chunks; send what becomes of each."""
    # Ctrl-C reaches every process of a terminal; the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        encoder: Encoder = connection.recv()
        while True:
            connection.send(encoder.encode(connection.recv()))
    except (EOFError, OSError):
        return


def _count(sequences: Sequence[Sequences], vocabulary: Vocabulary) -> SideCounts:
    unknown_ids = list(vocabulary.unknown_ids)
    return SideCounts(
        tokens=sum(len(part.ids) for part in sequences),
        unknown=sum(int(np.isin(part.ids, unknown_ids).sum()) for part in sequences),
        longest=max((int(part.lengths.max()) for part in sequences), default=0),
    )
