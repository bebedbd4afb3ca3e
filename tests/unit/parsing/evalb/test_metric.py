"""Scores of trees: of texts, with intervals, with tests between systems."""

import pytest

from nmtkit.config.metrics import BreakdownConfig, MetricsConfig, SignificanceConfig
from nmtkit.errors import ConfigError, DataError
from nmtkit.evaluation.evaluate import evaluate
from nmtkit.evaluation.metrics import make_metrics, score_corpus
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.parsing.evalb.comparison import compare_lines
from nmtkit.parsing.evalb.metric import evalb_report, parse_warnings, total
from nmtkit.parsing.evalb.parameters import COLLINS
from nmtkit.progress.counting import SILENT
from tests.messages import refuses

LONG = "(S " + "(A a) " * 41 + "(NP (B b)))"
GOLD = ["(S (NP (A a)) (VP (B b) (NP (C c))))", "(S (NP (A a) (B b)))", LONG]
GOOD = ["(S (NP (A a)) (VP (B b) (VP (C c))))", "(S (NP (A a) (B b)))", LONG]
BAD = ["(S (NP (A a) (B b)) (C c))", "(S (NP (A a)))", LONG.replace("NP", "VP")]
BRACKETS = MetricsConfig(metric="brackets")
PLAIN = SignificanceConfig()


def texts(*systems: list[str], references: int = 1) -> Texts:
    named = [Text(f"system {number}", lines) for number, lines in enumerate(systems)]
    return Texts(named, [Text("gold", GOLD)] * references)


def test_scores_are_computed_from_sums_over_sentences() -> None:
    f1, strict = score_corpus(make_metrics(BRACKETS), BAD, [GOLD])
    counts = total(one.for_sums() for one in compare_lines(GOLD, BAD, COLLINS))
    assert (f1.name, strict.name) == ("F1", "strict F1")
    assert (f1.score, strict.score) == (counts.f1, counts.strict_f1)
    assert strict.score < f1.score
    short = {"sentences": 2, "errors": 1}
    assert {name: f1.figures[name] for name in counts.figures()} == counts.figures()
    assert {name: f1.figures["short"][name] for name in short} == short
    assert f1.details == (
        "recall = 33.33 precision = 50.00 complete = 0.00 crossing = 0.50 tagging = 100.00 "
        "(sentences = 3 errors = 1 skipped = 0 F1<=40 = 33.33)"
    )
    assert (strict.details, strict.figures) == ("", {})


def test_the_signature_names_the_parameters_and_the_rule_for_missing_tags() -> None:
    *_, last = evalb_report(BRACKETS)(texts(GOOD), False, SILENT)
    for score in score_corpus(make_metrics(BRACKETS), GOOD, [GOLD]):
        assert score.signature.startswith("nrefs:1|prm:COLLINS|xx:gold|version:nmtkit-")
        assert last.remarks == [f"F1: {score.signature}"]


def test_systems_are_tested_against_the_first() -> None:
    config = SignificanceConfig(paired_ar=True, trials=50)
    both = texts(GOOD * 7, BAD * 7)
    both = Texts(both.systems, [Text("gold", GOLD * 7)])
    evaluation = evaluate(both, make_metrics(BRACKETS), config, BreakdownConfig())
    for good, bad in evaluation.scores:
        assert good.p_value is None
        assert bad.p_value is not None
        assert bad.p_value < 0.05
        assert good.score > bad.score


def test_intervals_are_drawn_from_the_same_sentences() -> None:
    config = SignificanceConfig(confidence=True, resamples=50)
    evaluation = evaluate(texts(GOOD), make_metrics(BRACKETS), config, BreakdownConfig())
    ((f1,), _) = evaluation.scores
    assert f1.interval is not None
    assert abs(f1.interval.mean - f1.score) < f1.interval.half_width


def test_sentences_are_grouped_by_the_number_of_words_in_a_tree() -> None:
    breakdown = BreakdownConfig(by_length=True)
    evaluation = evaluate(texts(GOOD), make_metrics(BRACKETS), PLAIN, breakdown)
    assert [(one.label, list(one.indices)) for one in evaluation.lengths] == [
        ("1-10", [0, 1]),
        ("41-50", [2]),
    ]
    short, long = evaluation.length_scores[0]
    assert (short[0].score < 100, long[0].score) == (True, 100)


def test_reports_on_sentences_need_one_system_and_one_reference() -> None:
    report = evalb_report(BRACKETS)
    with refuses(ConfigError, "2; --sentence-level"):
        list(report(texts(GOOD, BAD), False, SILENT))
    keys = "reference 2"
    with refuses(ConfigError, keys):
        list(report(texts(GOOD, references=2), False, SILENT))
    with refuses(ConfigError, keys):
        score_corpus(make_metrics(BRACKETS), GOOD, [GOLD, GOLD])


def test_too_many_errors_stop_scoring() -> None:
    with refuses(DataError, "line 12 unmatch 2|1; --prm"):
        score_corpus(make_metrics(BRACKETS), BAD[1:2] * 12, [GOLD[1:2] * 12])


def test_the_error_about_too_many_errors_names_the_system() -> None:
    systems = [Text("good.trees", GOLD[:1] * 12), Text("bad.trees", BAD[1:2] * 12)]
    both = Texts(systems, [Text("gold", GOLD[:1] * 12)])
    with refuses(DataError, "bad.trees line 12 unmatch; --prm"):
        evaluate(both, make_metrics(BRACKETS), PLAIN, BreakdownConfig())
    with refuses(DataError, "bad.trees line 12 unmatch; --prm"):
        list(evalb_report(BRACKETS)(Texts(systems[1:], both.references), False, SILENT))


@pytest.mark.parametrize("root", ["", "ROOT", "S1"])
def test_outer_brackets_that_count_on_one_side_give_a_warning(root: str) -> None:
    raw, clean = f"({root} (S (NN a) (. .)))", "(TOP (S (NN a) (. .)))"
    warned = "another outer bracket than the gold tree, so it counts on one side only; clean both"
    for gold, parsed in ((raw, clean), (clean, raw)):
        texts = Texts([Text("sys", [clean, parsed, parsed])], [Text("ref", [clean, gold, gold])])
        (warning,) = parse_warnings(texts)
        assert warning.startswith(f"sys:2: 2 lines have {warned}")
    for both in (raw, clean, "(S (NN a))"):
        assert not [*parse_warnings(Texts([Text("sys", [both])], [Text("ref", [both])]))]


def test_missing_parses_give_a_warning_and_checks_of_text_do_not_apply() -> None:
    texts = Texts([Text("sys", ["", "a ."])], [Text("ref", ["(NN a)", "(TOP (NN a) (. .))"])])
    (warning,) = parse_warnings(texts)
    assert warning.startswith("sys:1: 1 line has no translation")
