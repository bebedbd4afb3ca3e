import math

import pytest

from nmtkit.config.metrics import DEFAULT_METRICS, METRICS, cost, metric_commands
from nmtkit.config.rules import metric_command_problems


@pytest.mark.parametrize(
    ("metric", "better", "worse"),
    [("nll", 1.0, 2.0), ("bleu", 20.0, 10.0), ("brackets", 90.0, 80.0), ("ter", 40.0, 60.0)],
)
def test_a_better_value_costs_less_and_nan_costs_most(
    metric: str, better: float, worse: float
) -> None:
    costs = [cost(metric, value, {metric: value}) for value in (better, worse, math.nan)]
    assert costs == sorted(costs)
    assert costs[0] < costs[1] < costs[2] == math.inf


def test_the_scores_of_other_metrics_do_not_matter() -> None:
    assert cost("nll", 3.0, {"bleu": 5.0}) == cost("nll", 3.0, {})
    assert cost("bleu", 3.0, {"bleu": 5.0, "ter": 1.0}) == cost("bleu", 9.0, {"bleu": 5.0})


def test_each_type_of_target_has_a_default_that_compares_it() -> None:
    for kind, name in DEFAULT_METRICS.items():
        assert METRICS[name].compares == kind


def test_a_name_is_what_precedes_the_first_equals_sign() -> None:
    entries = ["ratio=python3 ratio.py --scale=100", " comet = run 'a b' "]
    assert metric_commands(entries) == {
        "ratio": "python3 ratio.py --scale=100",
        "comet": "run 'a b'",
    }
    assert not list(metric_command_problems(entries))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["ratio"], "metric_command ('ratio') must be NAME=COMMAND, such as "),
        (["ratio="], "metric_command ('ratio=') must be NAME=COMMAND, such as "),
        (["=cat"], "metric_command ('=cat') must be NAME=COMMAND, such as "),
        (["a b=cat"], "metric_command ('a b=cat') must be NAME=COMMAND, such as "),
        (["chrf=cat"], "metric_command: chrf is a metric, or a key of --json; choose another"),
        (["chrF2=cat"], "metric_command: chrF2 is a metric, or a key of --json; choose another"),
        (["system=cat"], "metric_command: system is a metric, or a key of --json; choose"),
        (["none=cat"], "metric_command: none is a metric, or a key of --json; choose another"),
        (["x=a", "y=b", "x=c"], "metric_command names 'x' twice; leave one out"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(entries: list[str], message: str) -> None:
    (problem,) = metric_command_problems(entries)
    assert problem.text.startswith(message)
    assert problem.keys == ("metric_command",)
