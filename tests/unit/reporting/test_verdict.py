from collections.abc import Mapping
from dataclasses import replace

import pytest

from nmtkit.config.metrics import MetricsConfig, SignificanceConfig
from nmtkit.evaluation.metrics import count_corpus, make_metrics
from nmtkit.evaluation.significance import score_systems
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.reporting.page import markdown_text
from nmtkit.reporting.report import markdown_of, report_on
from nmtkit.reporting.runs import Run
from nmtkit.reporting.verdict import verdict
from nmtkit.storage.run_folder import ValidationLines
from tests.unit.reporting.builders import HOSTILE, run_of, validated, validation

REFERENCE = [f"this is sentence {n} of a text that is not very long" for n in range(40)]
GOOD = [line.replace("not", "never") if n % 3 else line for n, line in enumerate(REFERENCE)]
CLOSE = [REFERENCE[0].replace("not", "never"), *REFERENCE[1:3], *GOOD[3:]]
"""One line is worse than in GOOD, two are better."""
BAD = [line.replace("text that", "long story which") for line in GOOD]
TRANSLATIONS = {"good": GOOD, "close": CLOSE, "bad": BAD}


def translating(name: str, metric: str = "bleu", **settings: float) -> Run:
    """Return a run with one validation, whose lines are stored."""
    made = make_metrics(MetricsConfig(metric=metric))[0]
    lines = count_corpus(made, TRANSLATIONS[name], [REFERENCE])
    score = made.score(lines, resamples=0)
    record = replace(
        validation(1000, 2.0),
        scores={metric: score.score},
        signatures={metric: score.signature},
    )
    stored = {metric: ValidationLines(1000, score.score, score.signature, lines)}
    return replace(run_of(name, [record], settings), lines=stored)


def p_of_texts(metric: str, *names: str) -> float:
    """Return p as `nmtkit score --paired-bs` computes it from texts."""
    made = make_metrics(MetricsConfig(metric=metric))[0]
    texts = Texts([Text(name, TRANSLATIONS[name]) for name in names], [Text("ref", REFERENCE)])
    *_, last = score_systems(made, texts, SignificanceConfig(paired_bs=True))
    assert last.p_value is not None
    return last.p_value


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_difference_beyond_chance_makes_a_run_better(metric: str) -> None:
    runs = [translating("bad", metric), translating("good", metric)]
    bad, good = (run.validations[0].scores[metric] for run in runs)
    label = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}[metric]
    p_value = p_of_texts(metric, "bad", "good")
    assert p_value < 0.05
    assert verdict(runs) == (
        f"good is better than bad by {abs(good - bad):.2f} dev {label} ({good:.2f} against "
        f"{bad:.2f}), which is more than chance (p = {p_value:.4f}, paired bootstrap of 1,000 "
        "resamples)."
    )
    assert verdict(runs[::-1]) == verdict(runs)


def test_a_difference_within_chance_puts_a_run_ahead() -> None:
    text = verdict([translating("good"), translating("close")])
    p_value = p_of_texts("bleu", "good", "close")
    assert p_value >= 0.05
    assert text.startswith("close is ahead of good by ")
    assert f", which may be chance (p = {p_value:.4f}, paired" in text


def test_the_best_of_several_is_compared_with_the_second_best() -> None:
    text = verdict([translating(name) for name in ("bad", "good", "close")])
    assert text.startswith("close is ahead of good, the second best of 3 runs, by ")
    assert f"(p = {p_of_texts('bleu', 'good', 'close'):.4f}, " in text


def test_equal_runs_are_equal() -> None:
    twin = replace(translating("good"), name="twin")
    score = twin.validations[0].scores["bleu"]
    assert verdict([translating("good"), twin]) == f"good equals twin by dev BLEU: {score:.2f}."


def test_runs_that_translate_nothing_are_compared_by_nll_without_a_test() -> None:
    nlls = {"deep": 2.25, "base": 2.0}
    runs = [run_of(name, validated([3.0, nll], [None] * 2)) for name, nll in nlls.items()]
    assert verdict(runs) == (
        "base is ahead of deep by 0.2500 dev nll (2.0000 against 2.2500), not tested for chance, "
        "as only scores of translations are."
    )


@pytest.mark.parametrize(
    "lines",
    [
        {},
        {"update": 900},
        {"score": 1.0},
        {"signature": "tok:none"},
    ],
)
def test_lines_of_another_validation_are_not_tested(lines: Mapping[str, object]) -> None:
    good, bad = translating("good"), translating("bad")
    other = {"bleu": replace(good.lines["bleu"], **lines)} if lines else {}  # type: ignore[arg-type]
    text = verdict([replace(good, lines=other), bad])
    assert text.startswith("good is ahead of bad by ")
    assert text.endswith("), not tested for chance, as the lines of good are not stored.")
    text = verdict([replace(good, lines=other), replace(bad, lines={})])
    assert text.endswith("as the lines of good and bad are not stored.")


def test_a_metric_that_does_not_compare_the_runs_is_passed_over() -> None:
    results = {"bleu": 20.0, "chrf": 50.0}
    record = replace(validation(100, 2.0), scores=results, signatures={"bleu": "a", "chrf": "b"})
    other = replace(record, scores={"bleu": 30.0, "chrf": 40.0}, signatures={"chrf": "b"})
    assert verdict([run_of("a", [record]), run_of("b", [other])]).startswith(
        "a is ahead of b by 10.00 dev chrF2 (50.00 against 40.00), not tested"
    )
    younger = replace(record, nll=1.5, scores={}, signatures={})
    text = verdict([run_of("a", [record]), run_of("b", [younger])])
    assert text.startswith("b is ahead of a by 0.5000 dev nll (1.5000 against 2.0000)")


def test_runs_that_no_result_compares_are_named_with_what_differs() -> None:
    base = run_of("base", validated([2.0], [20.0]))
    other = replace(base, name="other", validation_text="fedc")
    assert verdict([base, other]) == (
        "The runs cannot be compared: the validation texts differ (base; other)."
    )
    (record,) = base.validations
    lower = [replace(record, signatures={"bleu": "case:lc"})]
    other = replace(base, name="other", validations=lower, codec="other")
    signature = record.signatures["bleu"]
    assert verdict([base, other]) == (
        f"The runs cannot be compared: the signatures of BLEU differ (base: {signature}; other: "
        "case:lc), and the vocabularies differ (base; other)."
    )


def test_of_one_run_it_says_whether_it_is_finished_and_its_best_validation() -> None:
    results = validated([3.0, 2.0, 2.5], [10.0, 30.0, 20.0])
    assert verdict([run_of("base", results)]) == (
        "base is finished after 1,000 updates; its best validation by nll, at update 200, has nll "
        "2.0000, BLEU 30.00."
    )
    by_bleu = run_of("base", results, {"best_metric": "bleu", "max_updates": 2000})
    assert verdict([by_bleu]) == (
        "base is not finished, with 1,000 of 2,000 updates; its best validation by BLEU, at update "
        "200, has nll 2.0000, BLEU 30.00."
    )
    assert verdict([run_of()]) == "run is finished after 1,000 updates; it has no validation."


def test_a_report_begins_with_it() -> None:
    runs = [run_of("base", validated([3.0], [None])), run_of(HOSTILE, validated([2.0], [None]))]
    report = report_on(runs, with_paper=False)
    assert report.verdict == verdict(runs)
    assert report.verdict.startswith(f"{HOSTILE} is ahead of base by 1.0000 dev nll")
    assert markdown_of(report)[:3] == [markdown_text(report.verdict), "", "## Summary"]
