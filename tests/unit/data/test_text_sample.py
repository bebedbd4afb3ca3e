from collections import Counter
from collections.abc import Sequence

import pytest

from nmtkit.data import text_sample
from nmtkit.data.text_sample import BLOCK_PAIRS, MAX_BLOCKS, MAX_CHARACTERS, TextSample
from nmtkit.text.corpus import Pair
from nmtkit.text.lines import TOO_LONG
from tests.made_up import made_up_pairs


def sampled(pairs: Sequence[Pair], other: Sequence[Pair] = ()) -> TextSample:
    sample = TextSample(other)
    assert list(sample.watch(pairs)) == list(pairs)
    return sample


def numbered(number: int) -> list[Pair]:
    return [(f"source {i}", f"target {i}") for i in range(1, number + 1)]


@pytest.mark.parametrize("number", [1, 63, 64, 65, 64 * 128, 64 * 128 + 1, 64 * 300 + 7])
def test_blocks_are_even_consecutive_and_bounded(number: int) -> None:
    pairs = numbered(number)
    sample = sampled(pairs)
    assert sample.num_pairs == number
    num_blocks = -(-number // BLOCK_PAIRS)
    assert min(num_blocks, MAX_BLOCKS // 2) <= len(sample.blocks) <= MAX_BLOCKS
    for block in sample.blocks:
        assert list(block.pairs) == pairs[block.first - 1 :][:BLOCK_PAIRS]
    steps = {b.first - a.first for a, b in zip(sample.blocks, sample.blocks[1:], strict=False)}
    assert len(steps) <= 1  # even
    assert [pairs[line - 1] for line in sample.lines] == sample.pairs


def test_lines_are_truncated_and_unread_ones_are_empty() -> None:
    sample = sampled([("a" * 1000, "b"), (TOO_LONG, "c")])
    assert sample.pairs == [("a" * MAX_CHARACTERS, "b"), ("", "")]


def test_long_lines_of_another_sample_are_found() -> None:
    pair = ("a b " * MAX_CHARACTERS, "c d " * MAX_CHARACTERS)
    assert sorted(sampled([("x", "y"), pair], sampled([pair]).pairs).shared.values()) == [2, 2]


def test_repeated_pairs_are_counted() -> None:
    pairs = [*numbered(100), *numbered(50), *numbered(10), ("", ""), ("", "")]
    sample = sampled(pairs)
    distinct = len(Counter(pairs)) - 1  # blank pairs are dropped anyway
    assert sample.repeated == 1 - distinct / 160
    assert sample.repeated_lines == [101, 102, 103]


def test_an_equal_source_alone_is_no_repetition() -> None:
    assert sampled([("a", "b"), ("a", "c"), ("d", "b")]).repeated == 0


def test_the_share_of_repeated_pairs_is_estimated_above_the_bound_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_sample, "MAX_KEYS", 1000)
    sample = sampled([*numbered(20_000), *numbered(5_000)])
    assert len(sample._occurrences) <= 1000
    # 1 - 20000 / 25000; four standard deviations of 500 pairs or more
    assert sample.repeated == pytest.approx(0.2, abs=0.06)


def test_lines_of_another_text_are_found_on_their_own_side() -> None:
    train = made_up_pairs(200, seed=1)
    other = [*made_up_pairs(100, seed=2), train[30], (train[50][0], "x" * 30), ("short", "short")]
    sample = sampled([*train, ("short", other[0][0])], other)
    long = {line for pair in other for line in pair if len(line) >= 20}
    expected = {
        line: number
        for number, pair in enumerate(train, 1)
        for side, line in enumerate(pair)
        if len(line) >= 20 and line in [one[side] for one in other]
    }
    assert sample.shared == expected
    assert {31, 51} <= set(expected.values())
    assert sample.num_others == len(long)
