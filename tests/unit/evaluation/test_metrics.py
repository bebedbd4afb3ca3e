import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.metrics import METRICS, parse_metrics, score_corpus

LINES = ["The cat sat on the mat .", "It is guilty of nothing at all .", "Yes !"]


def test_a_perfect_translation_scores_100_and_needs_no_edits() -> None:
    scores = score_corpus(METRICS, LINES, LINES)
    assert [one.name for one in scores] == ["BLEU", "chrF2", "TER"]
    assert [one.score for one in scores] == pytest.approx([100, 100, 0])


def test_bleu_of_a_short_corpus_is_the_formula_s() -> None:
    """5 of 6 unigrams, 4 of 5 bigrams, 3 of 4 trigrams, 2 of 3 four-grams; no brevity penalty.

    Source: Papineni et al. 2002, section 2.3.
    """
    (score,) = score_corpus(["bleu"], ["a b c d e x"], ["a b c d e f"])
    assert score.score == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25, abs=1e-9)


def test_the_signature_names_the_settings() -> None:
    scores = score_corpus(METRICS, LINES, LINES)
    patterns = [
        r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:\d",
        r"nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:\d",
        r"nrefs:1\|case:lc\|tok:tercom\|norm:no\|punct:yes\|asian:no\|version:\d",
    ]
    for score, pattern in zip(scores, patterns, strict=True):
        assert re.match(pattern, score.signature)


def test_scores_come_in_the_order_asked_for() -> None:
    names = [one.name for one in score_corpus(["ter", "bleu"], LINES, LINES)]
    assert names == ["TER", "BLEU"]


@given(order=st.permutations(range(3)))
@settings(max_examples=6, deadline=None)
def test_the_order_of_lines_does_not_matter(order: list[int]) -> None:
    translations = ["A cat sat on the mat .", "It is guilty of all .", "No !"]
    expected = score_corpus(["bleu"], translations, LINES)
    shuffled = score_corpus(["bleu"], [translations[i] for i in order], [LINES[i] for i in order])
    assert shuffled == expected


def test_different_numbers_of_lines_are_refused_with_both_counts() -> None:
    message = "^2 translations and 3 references; give one translation a reference"
    with pytest.raises(DataError, match=message):
        score_corpus(["bleu"], LINES[:2], LINES)


def test_no_lines_are_refused() -> None:
    with pytest.raises(DataError, match=r"^no translations to score; give at least one line$"):
        score_corpus(["bleu"], [], [])


def test_a_list_of_metrics_names_each_once() -> None:
    assert parse_metrics("ter,bleu,ter") == ["ter", "bleu"]
    assert parse_metrics("bleu, chrf ") == ["bleu", "chrf"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bleu,chfr", r"no metric 'chfr'; did you mean 'chrf'\? \[--metric\]"),
        ("", r"no metric ''; known are: bleu, chrf, ter \[--metric\]"),
        ("BLEU", r"no metric 'BLEU'; known are: bleu, chrf, ter"),
    ],
)
def test_an_unknown_metric_is_refused_with_a_suggestion(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_metrics(text)


def test_text_that_looks_tokenised_is_scored_without_talk(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    score_corpus(METRICS, ["tokenised ."] * 200, ["tokenised ."] * 200)
    assert not caplog.records
    assert capsys.readouterr() == ("", "")
