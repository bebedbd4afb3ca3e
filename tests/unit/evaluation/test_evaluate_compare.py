from collections import Counter
from pathlib import Path

import pytest

from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.evaluation.breakdown import by_frequency, count_words, telling_ngrams
from nmtkit.evaluation.evaluate import NUM_NGRAMS, compare, evaluate, score_lines
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.texts import Text, Texts

REFERENCE = Text("ref", ["The cat sat on the mat.", "A dog ran.", "so " * 12 + "on."])
GOOD = Text("good", ["The cat sat on a mat.", "A dog ran.", "so " * 12 + "on."])
BAD = Text("bad", ["Cats sit.", "Dogs ran.", "so so on."])
TEXTS = Texts([GOOD, BAD], [REFERENCE, Text("other", ["x", "y", "z"])])
METRICS = make_metrics(MetricsConfig(metric="ter,bleu"))
PLAIN = SignificanceConfig()


def test_the_evaluation_is_that_without_a_page() -> None:
    for breakdown in (BreakdownConfig(), BreakdownConfig(by_length=True)):
        compared = compare(TEXTS, METRICS, PLAIN, breakdown)
        evaluation = evaluate(TEXTS, METRICS, PLAIN, breakdown)
        assert compared.evaluation.only(breakdown) == evaluation
        assert [one.label for one in compared.evaluation.lengths] == ["1-10", "11-20"]


def test_frequencies_are_counted_in_the_reference_or_in_a_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("mat mat cat\n", encoding="utf-8")
    compared = compare(TEXTS, METRICS, PLAIN, BreakdownConfig())
    own = count_words(REFERENCE.lines)
    assert compared.counted_text == "ref"
    assert compared.evaluation.frequencies == [
        by_frequency(one.lines, REFERENCE.lines, own) for one in TEXTS.systems
    ]
    given = compare(TEXTS, METRICS, PLAIN, BreakdownConfig(by_frequency=str(path)))
    assert given.counted_text == str(path)
    counts = Counter(mat=2, cat=1)
    assert given.evaluation.frequencies[0] == by_frequency(GOOD.lines, REFERENCE.lines, counts)


def test_line_scores_are_those_of_the_first_metric() -> None:
    compared = compare(TEXTS, METRICS, PLAIN, BreakdownConfig())
    assert compared.line_metric.name == "TER"
    for number, system in enumerate(TEXTS.systems):
        expected = list(score_lines(Texts([system], TEXTS.references), METRICS[:1]))
        assert [[score] for score in compared.line_scores[number]] == expected
    assert compared.line_scores[0][1] == pytest.approx(0)


def test_ngrams_are_of_the_first_reference() -> None:
    compared = compare(TEXTS, METRICS, PLAIN, BreakdownConfig())
    lines = [one.lines for one in TEXTS.systems]
    assert compared.ngrams == telling_ngrams(lines, REFERENCE.lines, NUM_NGRAMS)
