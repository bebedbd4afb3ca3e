from collections import Counter
from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.data.audit import SideCounts
from nmtkit.data.binary import Sequences
from nmtkit.data.encode import Encoder, assign_shards, encode_in_order
from nmtkit.text.corpus import Chunk, LinkedLine
from nmtkit.text.lines import TOO_LONG
from tests.tiny import WORDS, tiny_codec, tiny_encoder

SEEDS = st.integers(0, 2**70)


def encoder(num_shards: int) -> Encoder:
    return tiny_encoder(FilterConfig(max_length=5, max_ratio=2.0), num_shards)


def split(sequences: Sequences) -> list[list[int]]:
    ends = np.cumsum(sequences.lengths)
    return [part.tolist() for part in np.split(sequences.ids, ends[:-1])]


@given(SEEDS, st.integers(0, 10**9), st.lists(st.integers(0, 50), max_size=5), st.integers(1, 9))
def test_shards_of_pairs_do_not_depend_on_chunks(
    seed: int, first: int, sizes: list[int], num_shards: int
) -> None:
    whole = assign_shards(seed, first, sum(sizes), num_shards)
    starts = np.cumsum([first, *sizes])
    parts = [
        assign_shards(seed, int(s), n, num_shards) for s, n in zip(starts, sizes, strict=False)
    ]
    assert np.concatenate([*parts, np.zeros(0)]).tolist() == whole.tolist()
    assert set(whole.tolist()) <= set(range(num_shards))


def test_shards_are_even_and_depend_on_the_seed() -> None:
    num_pairs, num_shards = 70_000, 7
    shards = assign_shards(1, 0, num_pairs, num_shards)
    sizes = np.bincount(shards)
    # 6 standard deviations of a binomial count.
    assert abs(sizes - num_pairs / num_shards).max() < 6 * (num_pairs / num_shards) ** 0.5
    assert (shards == assign_shards(2, 0, num_pairs, num_shards)).mean() < 0.2
    # Not round robin either: the shards after shard 0 are as mixed as all others.
    assert len(set(shards[1:][shards[:-1] == 0].tolist())) == num_shards


LINES = st.lists(st.sampled_from([*WORDS, "?"]), max_size=6).map(" ".join)


@given(st.lists(st.tuples(LINES, LINES), max_size=20))
def test_kept_pairs_are_the_ids_of_the_lines_in_order(pairs: list[tuple[str, str]]) -> None:
    codec = tiny_codec()
    encoded = encoder(num_shards=3).encode(Chunk(0, 40, 41, pairs))
    shards = assign_shards(1, 40, len(pairs), 3)
    expected: dict[int, tuple[list[list[int]], list[list[int]]]] = {}
    reasons: Counter[str] = Counter()
    for shard, (source, target) in zip(shards.tolist(), pairs, strict=True):
        sizes = sorted([len(source.split()), len(target.split())])
        if sizes[0] == 0:
            reasons["empty"] += 1
        elif sizes[1] > 4:
            reasons["too long"] += 1
        elif sizes[1] > 2 * sizes[0]:
            reasons["ratio"] += 1
        else:
            sides = expected.setdefault(shard, ([], []))
            sides[0].append(codec.encode_source(source))
            sides[1].append(codec.encode_target(target))
    found = {shard: (split(ids.source), split(ids.target)) for shard, ids in encoded.shards.items()}
    assert found == expected
    assert Counter(encoded.counts.dropped) == reasons


def test_links_of_a_line_that_is_too_long_to_read_are_dropped_with_it() -> None:
    pairs = [(TOO_LONG, "A"), ("a b", "A B")]
    links = [LinkedLine("links:1", "7-0", None), LinkedLine("links:2", "1-0", None)]
    encoded = encoder(num_shards=1).encode(Chunk(0, 0, 1, pairs, links))
    found = encoded.shards[0].links
    assert found is not None
    assert split(found) == [[1, 0]]


def test_tokens_of_kept_pairs_are_counted() -> None:
    pairs = [("a ? b", "A ? ?"), ("?", ""), ("a a a a", "b c d e"), ("", "")]
    counts = encoder(num_shards=2).encode(Chunk(0, 0, 1, pairs)).counts
    assert counts.source == SideCounts(tokens=9, unknown=1, longest=5)
    assert counts.target == SideCounts(tokens=9, unknown=2, longest=5)
    assert (counts.read, counts.kept) == (4, 2)


def test_without_workers_chunks_are_encoded_one_by_one() -> None:
    taken = []

    def chunks() -> Iterator[Chunk]:
        for number in range(3):
            taken.append(number)
            yield Chunk(0, number, number + 1, [("a", "b")] * (number + 1))

    encoded = encode_in_order(encoder(num_shards=1), chunks(), workers=1)
    assert next(encoded).counts.read == 1
    assert taken == [0]
    assert [one.counts.read for one in encoded] == [2, 3]
