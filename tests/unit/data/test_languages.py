import math
from collections import Counter

import numpy as np
import pytest

from nmtkit.data.languages import LanguageScores, Trigrams, language_identifier

LINES = ["Ab, c", "", "ABC  b4b", "\u00c4b c"]


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


def test_log_probabilities_and_means_equal_their_definitions() -> None:
    model = Trigrams.of([LINES[0], LINES[3]]).log_probabilities()
    assert np.exp(model).sum() == pytest.approx(1)
    names = Counter(one for index in (0, 3) for one in trigrams_of(LINES[index]))
    expected = [
        math.log((names[one] + 0.5) / (6 + 0.5 * len(model))) for one in trigrams_of(LINES[2])
    ]
    assert Trigrams.of(LINES).means(model).tolist()[1:3] == pytest.approx([0, sum(expected) / 5])


def rank(line: str) -> list[tuple[str, float]]:
    """Identify languages by their vowels; two of them are related."""
    costs = {"a": "eo", "ae": "o", "o": "ae"}
    counts = Counter(line)
    return [(name, -5.0 * sum(map(counts.__getitem__, wrong))) for name, wrong in costs.items()]


def scores_of(*lines: str) -> LanguageScores:
    return LanguageScores.of(lines, rank)


KNOWN = scores_of(*19 * ["bababababababababababa"], "bobobobobobobobobobobo")


def test_lines_in_none_of_the_usual_languages_are_found() -> None:
    lines = ["bababababababababababa", "bebebebebebebebebebebe", "bobobobobobobobobobobo"]
    assert scores_of(*lines).in_other_language(KNOWN).tolist() == [False, True, False]
    mostly_a = scores_of(*20 * lines[:1], lines[2])
    assert scores_of(*lines).in_other_language(mostly_a).tolist() == [False, True, True]
    assert mostly_a.in_other_language(mostly_a).tolist() == 20 * [False] + [True]


def test_what_is_little_more_likely_in_another_language_is_not_found() -> None:
    lines = [19 * "ba" + number * "be" for number in (3, 4)]  # 15 and 20 nats
    assert scores_of(*lines).in_other_language(KNOWN).tolist() == [False, True]


def test_short_lines_are_not_judged() -> None:
    lines = ["bebebebebebebebebeb", "bebebebebebebebebebe", "\u3042" * 7, ""]
    assert scores_of(*lines).are_judged.tolist() == [False, True, False, False]
    always = [("x", -1.0), ("y", -2.0)]
    judged = LanguageScores.of(lines, lambda _: always).are_judged
    assert judged.tolist() == [False, True, True, False]
    assert not scores_of(lines[1]).in_other_language(scores_of("")).any()


def test_the_package_identifies_languages() -> None:
    pytest.importorskip("py3langid")
    identifier = language_identifier()
    assert identifier
    known = LanguageScores.of(["This is a sentence of the validation text."], identifier)
    lines = ["We met the others at the station.", "Gestern trafen wir sie am Bahnhof."]
    assert LanguageScores.of(lines, identifier).in_other_language(known).tolist() == [False, True]
