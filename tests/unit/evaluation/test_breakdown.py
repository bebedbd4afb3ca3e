import math
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.evaluation.breakdown import (
    MIN_DIFFERENCE,
    ORDERS,
    Ngram,
    NgramCounts,
    by_frequency,
    by_length,
    count_words,
    telling_ngrams,
)
from nmtkit.text.words import words_and_punctuation

LINES = st.lists(st.text("ab ,", max_size=40), max_size=20)
PAIRS = st.lists(st.tuples(st.text("abc ", max_size=9), st.text("abc ", max_size=9)), max_size=6)


@pytest.mark.parametrize(
    ("line", "num_words"),
    [
        ("मैं हिन्दी में किताब पढ़ता हूँ", 6),
        ("我喜欢红苹果。", 7),
        ("น้ำใจดีมาก", 7),
        ("مُحَمَّدٌ فِي البَيْتِ", 3),
        ("cafe\u0301 noir", 2),
    ],
)
def test_words_are_those_of_the_script(line: str, num_words: int) -> None:
    (found,) = by_length([" ".join([line] * 3)])
    first, _, last = found.label.partition("-")
    assert int(first) <= 3 * num_words <= int(last)
    assert sum(count_words([line]).values()) == num_words


@given(LINES)
def test_every_sentence_is_in_the_class_of_its_length(lines: list[str]) -> None:
    classes = by_length(lines)
    assert sorted(index for one in classes for index in one.indices) == list(range(len(lines)))
    for one in classes:
        first, _, last = one.label.removesuffix("+").partition("-")
        limit = float("inf") if one.label.endswith("+") else int(last or first)
        for index in one.indices:
            assert int(first) <= len(words_and_punctuation(lines[index])) <= limit


def test_classes_of_length_are_named_and_empty_ones_left_out() -> None:
    lines = ["", "a", "a " * 10, "a " * 11, "a " * 60, "a " * 61, "a " * 900]
    table = [(one.label, list(one.indices)) for one in by_length(lines)]
    assert table == [("0", [0]), ("1-10", [1, 2]), ("11-20", [3]), ("51-60", [4]), ("61+", [5, 6])]


def test_correct_words_count_at_most_as_often_as_in_the_reference() -> None:
    counts = Counter({"a": 1, "b": 7})
    classes = by_frequency(["a a b", "b"], ["a b c", "c"], counts)
    classes_with_words = {one.label: one for one in classes if one.num_words or one.num_translated}
    assert {label: one.num_words for label, one in classes_with_words.items()} == {
        "0": 2,
        "1": 1,
        "5-9": 1,
    }
    assert {label: one.num_matches for label, one in classes_with_words.items()} == {
        "0": 0,
        "1": 1,
        "5-9": 1,
    }
    assert classes_with_words["1"].f1 == pytest.approx(100 * 2 * (1 / 2) * 1 / (1 / 2 + 1))
    assert classes_with_words["5-9"].f1 == pytest.approx(100 * 2 * (1 / 2) * 1 / (1 / 2 + 1))


def test_all_frequency_classes_are_listed_from_rare_to_frequent() -> None:
    labels = [one.label for one in by_frequency([], [], Counter())]
    assert labels == ["0", "1", "2", "3", "4", "5-9", "10-99", "100-999", "1000+"]


@given(PAIRS)
def test_all_words_of_the_reference_itself_are_correct(pairs: list[tuple[str, str]]) -> None:
    reference = [line for _, line in pairs]
    for one in by_frequency(reference, reference, count_words(reference)):
        assert one.num_matches == one.num_words == one.num_translated
        assert one.f1 == (100 if one.num_words else 0)
        assert one.label != "0" or one.num_words == 0


@given(PAIRS)
def test_classes_sum_to_the_words_of_both_texts(pairs: list[tuple[str, str]]) -> None:
    translations = [translation for translation, _ in pairs]
    reference = [line for _, line in pairs]
    classes = by_frequency(translations, reference, count_words(reference[:2]))
    assert sum(one.num_words for one in classes) == sum(count_words(reference).values())
    assert sum(one.num_translated for one in classes) == sum(count_words(translations).values())
    common = sum(
        min(words_and_punctuation(one).count(word), words_and_punctuation(other).count(word))
        for one, other in pairs
        for word in set(words_and_punctuation(one))
    )
    assert sum(one.num_matches for one in classes) == common


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
