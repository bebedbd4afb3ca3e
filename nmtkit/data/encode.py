"""Encoding of chunks of text: ids of the kept pairs per shard, computed by worker processes."""

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.audit import Example, PairCounts, SideCounts, first_of_each
from nmtkit.data.binary import LINK_TYPE, PairIds, Sequences
from nmtkit.data.filters import HeldOutText, PairFlags, Reason, drop_reason, reasons_of
from nmtkit.errors import ConfigError, DataError
from nmtkit.runtime.workers import Worker, ended_early
from nmtkit.spans.marked_lines import MarkedLines
from nmtkit.spans.markup import read_markup
from nmtkit.text.codec import TextCodec
from nmtkit.text.corpus import Chunk, LinkedLine, Pair
from nmtkit.text.lines import TOO_LONG
from nmtkit.text.links import (
    Link,
    check_links,
    in_order,
    links_of_pieces,
    parse_links,
    words_of_pieces,
)
from nmtkit.text.marks import links_of_marks
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.text.words import words_of

_REMEDY = "run with fewer workers [--workers]"


@dataclass(frozen=True)
class EncodedChunk:
    """The kept pairs of a chunk, with counts.

    Attributes:
        corpus: index of its corpus.
        counts: counts of its pairs.
        shards: the kept pairs, by shard.
        num_unmarked: number of pairs whose tags have no marks, because they differ or are too many.
    """

    corpus: int
    counts: PairCounts
    shards: dict[int, PairIds]
    num_unmarked: int = 0


@dataclass(frozen=True)
class Encoder:
    """Converts chunks to ids; the result depends only on the chunk and these settings.

    Attributes:
        codec: converts lines to ids.
        filters: settings that drop pairs.
        held_out: pairs with a line of this text are dropped.
        flags: of the pairs to drop as duplicates, or for their scores; by reason.
        first_ids: per corpus, ids that each source sequence begins with: symbols and tags.
        id_type: type of the ids, a name in `ID_TYPES`.
        seed: determines the shard of each pair.
        num_shards: number of shards.
        markup: of all lines, whose tags become marks; "none" = lines are plain text.
    """

    codec: TextCodec
    filters: FilterConfig
    held_out: HeldOutText
    flags: Mapping[Reason, PairFlags]
    first_ids: tuple[tuple[int, ...], ...]
    id_type: str
    seed: int
    num_shards: int
    markup: str = "none"

    def encode(self, chunk: Chunk) -> EncodedChunk:
        """Convert a chunk to ids."""
        num_pairs = len(chunk.pairs)
        shards = assign_shards(self.seed, chunk.first, num_pairs, self.num_shards).tolist()
        flagged: list[Reason | None] = [None] * num_pairs
        for cause, flags in self.flags.items():
            for place in np.flatnonzero(flags.flags_of(chunk.first, num_pairs)).tolist():
                flagged[place] = flagged[place] or cause
        first = self.first_ids[chunk.corpus]
        dropped = dict.fromkeys(reasons_of(self.filters), 0)
        examples: list[Example] = []
        kept: dict[int, list[tuple[list[int], list[int], list[Link]]]] = {}
        num_unmarked = 0
        for number, (shard, raw) in enumerate(zip(shards, chunk.pairs, strict=True)):
            try:
                pair = plain_pair(raw, self.markup)
                source = self.codec.encode_source(pair[0])
                target = self.codec.encode_target(pair[1])
            except DataError as error:
                raise DataError(f"pair {chunk.first + number + 1}: {error}") from None
            sizes = len(source), len(target)
            links = self._links(chunk.links[number], pair, (source, target)) if chunk.links else []
            reason = drop_reason(pair, sizes, flagged[number], self.filters, self.held_out)
            if reason:
                dropped[reason] += 1
                examples.append(Example.of(reason, chunk.line + number, pair))
                continue
            if raw != pair:
                source, target, links, is_unmarked = self._marked(raw, source, target, links)
                num_unmarked += is_unmarked
            if first:
                source = [*first, *source]
                links = [(place + len(first), other) for place, other in links]
            kept.setdefault(shard, []).append((source, target, links))
        packed = {}
        for shard, pairs in kept.items():
            sources, targets, links_of_pairs = zip(*pairs, strict=True)
            links_ids = [[*chain.from_iterable(links)] for links in links_of_pairs]
            packed[shard] = PairIds(
                Sequences.pack(sources, self.id_type),
                Sequences.pack(targets, self.id_type),
                Sequences.pack(links_ids, LINK_TYPE) if chunk.links else None,
            )
        counts = PairCounts(
            read=num_pairs,
            dropped=dropped,
            source=_count([pairs.source for pairs in packed.values()], self.codec.source),
            target=_count([pairs.target for pairs in packed.values()], self.codec.target),
            linked=sum(bool(links) for pairs in kept.values() for _, _, links in pairs),
            examples=first_of_each(examples),
        )
        return EncodedChunk(chunk.corpus, counts, packed, num_unmarked)

    @cached_property
    def _marked_lines(self) -> MarkedLines:
        return MarkedLines(self.codec.source, self.codec.target)

    def _marked(
        self, raw: Pair, source: list[int], target: list[int], links: list[Link]
    ) -> tuple[list[int], list[int], list[Link], bool]:
        """Return a pair with the marks of its tags, and whether it has tags and gets none."""
        lines = [read_markup(one, self.markup) for one in raw]
        marked = self._marked_lines.write_pair(*lines)
        if not marked or max(map(len, marked)) > self.filters.max_length:
            return source, target, links, any(one.elements for one in lines)
        marks = self._marked_lines.source_marks, self._marked_lines.target_marks
        both = zip(marks, marked, strict=True)
        places = [[*own.places_of_text(ids)] for own, ids in both]
        moved = {(places[0][one], places[1][other]) for one, other in links}
        moved |= {*links_of_marks(marked, marks)} if links else set()
        return *marked, in_order(moved), False

    def _links(
        self, line: LinkedLine, pair: Pair, ids: tuple[Sequence[int], Sequence[int]]
    ) -> list[Link]:
        """Return the links between the pieces of a pair."""
        if TOO_LONG in (*pair, *(line.tokens or ())):
            return []
        sides = self.codec.source, self.codec.target
        words = [text.split() for text in line.tokens] if line.tokens else [*map(words_of, pair)]
        try:
            links = parse_links(line.text)
            check_links(links.possible, (len(words[0]), len(words[1])))
        except DataError as error:
            raise DataError(f"{line.where}: {error}") from None
        if not links.sure:
            return []
        return links_of_pieces(
            links.sure,
            *(
                words_of_pieces(side, own[:-1], own_words, text)
                for side, own, own_words, text in zip(sides, ids, words, pair, strict=True)
            ),
        )


def check_marks(markup: str, codec: TextCodec) -> None:
    """Raise ConfigError for text with markup, and a codec without marks for its tags."""
    if markup != "none" and not codec.num_marks:
        raise ConfigError(
            f"markup ({markup!r}): tags become marks, and the vocabulary has none; give --marks 20 "
            "[corpus.markup]"
        )


def plain_pair(pair: Pair, markup: str) -> Pair:
    """Return the plain text of a pair with markup; "none" = the pair itself.

    Raises:
        DataError: a line is a document.
    """
    if markup == "none" or TOO_LONG in pair:
        return pair
    source, target = (read_markup(one, markup).text for one in pair)
    return source, target


def assign_shards(seed: int, first: int, num_pairs: int, num_shards: int) -> NDArray[np.int64]:
    """Assign consecutive pairs to random shards, which depend only on seed and pair number.

    Source: SplitMix64, Steele, Lea and Flood 2014, https://doi.org/10.1145/2660193.2660195

    Args:
        seed: initial state of the generator.
        first: number of the first pair over all corpora.
        num_pairs: number of pairs.
        num_shards: number of shards.

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
    """Encode chunks and yield the results in order; close the generator to end early.

    Args:
        encoder: encodes each chunk.
        chunks: read as needed; each worker has one chunk at a time.
        workers: number of processes; at most 1 = encode in this process.

    Raises:
        ResourceError: a worker was killed.
        NmtkitError, MemoryError, OSError: raised by a worker.
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
    """Receive an encoder, then chunks; send back each encoded chunk."""
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
