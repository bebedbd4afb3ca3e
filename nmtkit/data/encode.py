"""Chunks of text to ids, filtered and dealt to shards; in worker processes, in order."""

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.audit import Example, PairCounts, SideCounts, first_of_each
from nmtkit.data.binary import Part, Sequences
from nmtkit.data.filters import REASONS, HeldOut, drop_reason
from nmtkit.data.repeats import Repeats
from nmtkit.runtime.workers import Worker, ended_early
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.corpus import Chunk

_REMEDY = "run with fewer workers [--workers]"


@dataclass(frozen=True)
class EncodedChunk:
    """What became of a chunk.

    Attributes:
        corpus: which one it is of.
        num_pairs: pairs it held.
        counts: of its pairs, except those of other parts.
        shards: the pairs that were kept, by shard, source and target.
        examples: some of those that were dropped, their lines numbered over all corpora.
    """

    corpus: int
    num_pairs: int
    counts: PairCounts
    shards: dict[int, tuple[Sequences, Sequences]]
    examples: list[Example]


@dataclass(frozen=True)
class Encoder:
    """All that decides what becomes of a chunk.

    Attributes:
        codec: line to ids.
        filters: which pairs are kept.
        held_out: text that no pair that is kept has a line of.
        repeats: which pairs are equal to an earlier one; None if they are kept.
        tags: for each corpus, the ids that its source sequences begin with.
        id_type: type of the ids, a name in `ID_TYPES`.
        seed: what dealing to shards is drawn from.
        num_shards: shards to deal to.
        part: whose shards are made; the pairs of others are passed over.
    """

    codec: TextCodec
    filters: FilterConfig
    held_out: HeldOut
    repeats: Repeats | None
    tags: tuple[tuple[int, ...], ...]
    id_type: str
    seed: int
    num_shards: int
    part: Part

    def encode(self, chunk: Chunk) -> EncodedChunk:
        """Turn a chunk into ids."""
        num_pairs = len(chunk.pairs)
        shards = deal(self.seed, chunk.first, num_pairs, self.num_shards).tolist()
        repeated = [False] * num_pairs
        if self.repeats:
            repeated = self.repeats.among(chunk.first, num_pairs).tolist()
        tag = self.tags[chunk.corpus]
        num_passed_over = 0
        dropped = dict.fromkeys(REASONS, 0)
        examples: list[Example] = []
        kept: dict[int, tuple[list[list[int]], list[list[int]]]] = {}
        for number, (shard, pair) in enumerate(zip(shards, chunk.pairs, strict=True)):
            if not self.part.has(shard):
                num_passed_over += 1
                continue
            source = self.codec.encode_source(pair[0])
            target = self.codec.encode_target(pair[1])
            sizes = len(source), len(target)
            reason = drop_reason(pair, sizes, repeated[number], self.filters, self.held_out)
            if reason:
                dropped[reason] += 1
                examples.append(Example.of(reason, chunk.first + number, pair))
                continue
            sources, targets = kept.setdefault(shard, ([], []))
            sources.append([*tag, *source] if tag else source)
            targets.append(target)
        packed = {
            shard: (Sequences.pack(sources, self.id_type), Sequences.pack(targets, self.id_type))
            for shard, (sources, targets) in kept.items()
        }
        counts = PairCounts(
            read=num_pairs - num_passed_over,
            dropped=dropped,
            source=_count([source for source, _ in packed.values()], self.codec.source),
            target=_count([target for _, target in packed.values()], self.codec.target),
        )
        return EncodedChunk(chunk.corpus, num_pairs, counts, packed, first_of_each(examples))


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
        workers: number of processes; at most 1 = this process encodes.

    Raises:
        ResourceError: a worker was killed.
        NmtkitError, MemoryError, OSError: what a worker raised.
    """
    if workers <= 1:
        yield from map(encoder.encode, chunks)
        return
    rest = iter(chunks)
    first = list(islice(rest, workers))
    busy: deque[Worker[EncodedChunk]] = deque()
    try:
        for _ in first:
            busy.append(Worker(_serve, ended_early(_REMEDY)))
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


def _serve(connection: "Connection[EncodedChunk, Any]") -> None:
    """Receive an encoder, then chunks; send each of them encoded."""
    encoder: Encoder = connection.recv()
    while True:
        connection.send(encoder.encode(connection.recv()))


def _count(sequences: Sequence[Sequences], vocabulary: Vocabulary) -> SideCounts:
    unknown_ids = list(vocabulary.unknown_ids)
    return SideCounts(
        tokens=sum(len(part.ids) for part in sequences),
        unknown=sum(int(np.isin(part.ids, unknown_ids).sum()) for part in sequences),
        longest=max((int(part.lengths.max()) for part in sequences), default=0),
    )
