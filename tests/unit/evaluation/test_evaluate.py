from pathlib import Path

import pytest

from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.errors import ConfigError
from nmtkit.evaluation.evaluate import evaluate, score_lines
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.progress.counting import WorkReporter
from tests.doubles import report_everything
from tests.messages import refuses

SHORT = ["A cat sat on the mat.", "A dog ran."]
LONG = ["so " * 12 + "it goes on and on."]
REFERENCE = Text("ref", SHORT + LONG)
GOOD = Text("good", ["A cat sat on a mat.", "A dog ran.", *LONG])
BAD = Text("bad", ["The cat is sitting.", "Dogs ran.", LONG[0].upper()])
TEXTS = Texts([GOOD, BAD], [REFERENCE, Text("other", ["x", "y", "z"])])
METRICS = MetricsConfig(metric="bleu,paper-bleu", language_pair="de-en")
PLAIN = SignificanceConfig()


def test_each_system_scores_as_if_it_were_alone() -> None:
    metrics = make_metrics(METRICS)
    evaluation = evaluate(TEXTS, metrics, PLAIN, BreakdownConfig())
    references = [text.lines for text in TEXTS.references]
    alone = [score_corpus(metrics, text.lines, references) for text in TEXTS.systems]
    assert [list(scores) for scores in evaluation.scores] == [
        list(scores) for scores in zip(*alone, strict=True)
    ]
    assert evaluation.systems == ["good", "bad"]
    assert not evaluation.lengths
    assert not evaluation.frequencies


def test_a_class_of_length_scores_as_its_lines_alone() -> None:
    metrics = make_metrics(METRICS)
    evaluation = evaluate(TEXTS, metrics, PLAIN, BreakdownConfig(by_length=True))
    assert [one.label for one in evaluation.lengths] == ["1-10", "11-20"]
    references = [text.lines[:2] for text in TEXTS.references]
    for number, text in enumerate(TEXTS.systems):
        alone = score_corpus(metrics, text.lines[:2], references)
        assert [classes[0][number] for classes in evaluation.length_scores] == alone


def test_words_are_grouped_by_frequency_in_the_given_text(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("cat cat dog\ncat\n", "utf-8")
    breakdown = BreakdownConfig(by_frequency=str(tmp_path / "train"))
    evaluation = evaluate(TEXTS, make_metrics(METRICS), PLAIN, breakdown)
    good, bad = evaluation.frequencies
    assert (good[1].label, good[1].num_words, good[1].f1, bad[1].f1) == ("1", 1, 100, 0)
    assert (good[3].label, good[3].num_words, good[3].f1, bad[3].f1) == ("3", 1, 100, 100)


def test_long_lines_score_as_texts_of_one_line() -> None:
    metrics = make_metrics(MetricsConfig(metric="bleu,chrf,ter,paper-bleu", language_pair="de-en"))
    alone = Texts([GOOD], TEXTS.references)
    lines = list(score_lines(alone, metrics))
    assert len(lines) == 3
    for index in (0, 2):
        references = [[text.lines[index]] for text in TEXTS.references]
        scores = score_corpus(metrics, [GOOD.lines[index]], references)
        assert lines[index] == pytest.approx([one.score for one in scores])
    signatures = [metric.line_signature() for metric in metrics]
    assert "|eff:yes|tok:13a|" in signatures[0]
    assert "|tok:moses-en+compounds|" in signatures[3]


def test_a_line_without_four_words_is_scored_by_the_ngrams_that_it_has() -> None:
    texts = Texts([Text("s", ["Good day"])], [Text("r", ["Good day"])])
    ((score,),) = score_lines(texts, make_metrics(MetricsConfig()))
    assert score == pytest.approx(100)


def test_tokenizing_and_each_class_of_length_show_their_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report_everything(monkeypatch)
    messages: list[str] = []
    metrics, breakdown = make_metrics(METRICS), BreakdownConfig(by_length=True)
    plain = evaluate(TEXTS, metrics, PLAIN, breakdown)
    assert evaluate(TEXTS, metrics, PLAIN, breakdown, WorkReporter(messages.append)) == plain
    last = [line.partition(", 0")[0].partition(" lines")[0] for line in messages if "%" not in line]
    last = [line.partition(" line")[0] for line in last]
    assert last == [
        f"{verb}: {number}"
        for metric in ("BLEU", "paper-BLEU")
        for verb, number in [
            (f"prepared for {metric}", 12),
            *((f"scored {name} by {metric}", 3) for name in ("good", "bad")),
            *((f"scored {name} by {metric}, 1-10 words", 2) for name in ("good", "bad")),
            *((f"scored {name} by {metric}, 11-20 words", 1) for name in ("good", "bad")),
        ]
    ]


def test_lines_of_several_systems_are_refused() -> None:
    with refuses(ConfigError, "sentence 2; --sentence-level"):
        next(score_lines(TEXTS, make_metrics(METRICS)))
