import math
import random
from collections import Counter

import numpy as np
import pytest

from nmtkit.data.languages import MIN_LETTERS, Trigrams, log_model, other_language
from tests.made_up import made_up_line, meanings

LINES = ["Ab, c", "", "ABC  b4b", "\u00c4b c"]


def lines_in(language: str, number: int, seed: int) -> list[str]:
    return [made_up_line(language, meaning) for meaning in meanings(number, seed)]


def trigrams_of(line: str) -> list[str]:
    plain = "".join(one if one.isalpha() else " " for one in f" {line.lower()} ")
    return [plain[i - 1 : i + 2] for i in range(1, len(plain) - 1) if plain[i] != " "]


def test_equal_trigrams_have_equal_bins() -> None:
    trigrams = Trigrams.of(LINES)
    expected = [(index, one) for index, line in enumerate(LINES) for one in trigrams_of(line)]
    assert trigrams.line.tolist() == [index for index, _ in expected]
    assert trigrams.letters.tolist() == [3, 0, 5, 3]
    bins = dict(zip([one for _, one in expected], trigrams.bins.tolist(), strict=True))
    assert trigrams.bins.tolist() == [bins[one] for _, one in expected]
    assert len({*bins.values()}) == len(bins)  # no collisions among these


def test_counts_and_means_equal_their_definitions() -> None:
    trigrams = Trigrams.of(LINES)
    chosen = np.array([True, True, False, True])
    counts = trigrams.counts(chosen)
    assert counts.sum() == 6
    model = log_model(counts)
    assert np.exp(model).sum() == pytest.approx(1)
    names = Counter(one for index in (0, 3) for one in trigrams_of(LINES[index]))
    expected = [
        math.log((names[one] + 0.5) / (6 + 0.5 * len(counts))) for one in trigrams_of(LINES[2])
    ]
    assert trigrams.means(model).tolist()[1:3] == pytest.approx([0, sum(expected) / 5])


def foreign(lines: list[str], known: list[str]) -> set[int]:
    trigrams = Trigrams.of(lines)
    everything = np.ones(len(lines), bool)
    known_trigrams = Trigrams.of(known)
    counts = known_trigrams.counts(np.ones(len(known), bool))
    found = other_language(lines, trigrams, everything, known, counts)
    return {*np.flatnonzero(found).tolist()}


@pytest.mark.parametrize(
    ("share", "has_known"), [(0, False), (0, True), (0.01, False), (0.01, True), (0.1, True)]
)
def test_lines_of_another_language_are_found(share: float, has_known: bool) -> None:
    lines = lines_in("one", 2000, seed=1)
    others = random.Random(1).sample(range(2000), round(share * 2000))
    for index, line in zip(others, lines_in("two", len(others), seed=2), strict=True):
        lines[index] = line
    found = foreign(lines, lines_in("one", 300, seed=3) if has_known else [])
    expected = {i for i in others if sum(map(str.isalpha, lines[i])) >= MIN_LETTERS}
    assert len(found - expected) <= 2
    assert len(expected - found) <= 0.05 * len(expected)


def test_a_whole_text_is_compared_with_the_known_language() -> None:
    lines = lines_in("two", 500, seed=1)
    assert len(foreign(lines, lines_in("one", 300, seed=3))) > 450
    assert len(foreign(lines, lines_in("two", 300, seed=3))) <= 1
    assert foreign(lines, []) == set()


def test_a_topic_with_the_same_frequent_words_is_no_language() -> None:
    lines = lines_in("one", 2000, seed=1)
    topic = ["ququ", "wewe", "quwe", "wequ"]
    for index in range(0, 2000, 20):
        words = lines[index].split()
        lines[index] = " ".join(
            word for pair in zip(words, topic * 9, strict=False) for word in pair
        )
    assert foreign(lines, []) == set()


def test_little_text_is_not_judged_and_a_little_known_text_not_used() -> None:
    lines = [*lines_in("one", 2000, seed=1), *lines_in("two", 40, seed=2)]
    assert len(foreign(lines, lines_in("three", 40, seed=3))) in range(30, 41)
    assert foreign([*lines[:150], *lines[2000:]], lines_in("one", 40, seed=3)) == set()


def test_a_whole_text_of_a_topic_is_no_language() -> None:
    lines = [f"{line} ququwe {line[:9]} wewequ" for line in lines_in("one", 500, seed=1)]
    assert len(foreign(lines, lines_in("one", 300, seed=3))) <= 1


def test_lines_that_resemble_nothing_are_no_language() -> None:
    generator = random.Random(1)
    lines = lines_in("one", 1000, seed=1)
    for index in range(0, 1000, 100):
        lines[index] = "".join(chr(0x4E00 + generator.randrange(9000)) for _ in range(40))
    assert foreign(lines, lines_in("one", 300, seed=3)) == set()


def test_only_long_lines_that_are_to_be_judged_are_judged() -> None:
    lines = [*lines_in("one", 1000, seed=1), *(["ha ye zu"] * 50)]
    assert foreign(lines, []) == set()
    lines = [*lines_in("one", 1000, seed=1), *lines_in("two", 50, seed=2)]
    is_judged = np.arange(1050) < 1000
    trigrams = Trigrams.of(lines)
    nothing = np.zeros_like(trigrams.counts(is_judged))
    assert not other_language(lines, trigrams, is_judged, [], nothing).any()
    assert not other_language(lines, trigrams, np.zeros(1050, bool), [], nothing).any()
