"""N-grams, compared with counting by hand: every place of every n-gram, one after another."""

import math
from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.evaluation.breakdown import (
    MIN_DIFFERENCE,
    ORDERS,
    Ngram,
    NgramCounts,
    telling_ngrams,
)
from nmtkit.text.words import words_and_punctuation

EVERYTHING = 10**6
LINE = st.text("abc  ", max_size=12)
TEXTS = st.integers(1, 3).flatmap(
    lambda systems: st.lists(st.tuples(*[LINE] * (systems + 1)).map(list), min_size=1, max_size=5)
)
"""Lines of some systems, and that of the reference as the last one."""


def occurrences(line: str, ngram: Ngram) -> int:
    words = words_and_punctuation(line)
    return sum(words[start : start + len(ngram)] == [*ngram] for start in range(len(words)))


def brute_force(lines: Sequence[Sequence[str]], most: int) -> set[tuple[Ngram, tuple[int, ...]]]:
    """Return n-grams with their counts per column, found without the product's code."""
    all_ngrams = set()
    for *_, reference in lines:
        words = words_and_punctuation(reference)
        for order in ORDERS:
            starts = range(len(words) - order + 1)
            all_ngrams |= {tuple(words[start : start + order]) for start in starts}
    counts = {
        ngram: tuple(
            sum(
                min(occurrences(line[column], ngram), occurrences(line[-1], ngram))
                for line in lines
            )
            for column in range(len(lines[0]))
        )
        for ngram in all_ngrams
    }
    chosen = set()
    for order in ORDERS:
        for a, b in permutations(range(len(lines[0])), 2):
            candidates = [
                (-math.log2((row[a] + 1) / (row[b] + 1)), row[b] - row[a], ngram)
                for ngram, row in counts.items()
                if len(ngram) == order and row[a] - row[b] >= MIN_DIFFERENCE
            ]
            chosen |= {ngram for _, _, ngram in sorted(candidates)[:most]}
    return {(ngram, counts[ngram]) for ngram in chosen}


def found(lines: Sequence[Sequence[str]], most: int) -> NgramCounts:
    *systems, reference = zip(*lines, strict=True)
    return telling_ngrams(systems, reference, most)


@given(TEXTS, st.sampled_from([1, 2, EVERYTHING]))
def test_ngrams_and_their_counts_are_those_of_a_search_by_hand(
    lines: list[list[str]], most: int
) -> None:
    ngrams = found(lines, most)
    assert {(words, tuple(counts)) for words, counts in ngrams.items()} == brute_force(lines, most)
    assert [*ngrams] == sorted(ngrams)


def test_the_largest_ratio_comes_before_the_largest_difference() -> None:
    # often: 9 of 12 and 3; rare: 4 and 0. 10 / 4 is less than 5 / 1.
    reference = ["often"] * 12 + ["rare"] * 4
    one = ["often"] * 9 + [""] * 3 + ["rare"] * 4
    other = ["often"] * 3 + [""] * 13
    assert telling_ngrams([one, other], reference, 1)["rare",] == [4, 0, 4]
