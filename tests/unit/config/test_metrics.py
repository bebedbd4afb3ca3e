import math

import pytest

from nmtkit.config.metrics import DEFAULT_METRICS, METRICS, cost


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
