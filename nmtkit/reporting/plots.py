"""Which curves of runs are drawn."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from nmtkit.config.metrics import METRICS
from nmtkit.reporting.runs import Run, validated_metrics
from nmtkit.reporting.svg import Curve, Plot
from nmtkit.reporting.thinning import Points, thinned

MAX_POINTS = 500
"""Of a curve; a screen would not show more."""


def plots(runs: Sequence[Run]) -> list[Plot]:
    """Return the plots of all runs, without those that would be empty."""
    wanted = [
        _plot("Training loss, label-smoothed, nats per token", runs, _training_loss, False),
        _plot("Dev nll, nats per token", runs, _dev_nll, False),
        *(
            _plot(f"Dev {METRICS[metric].label}", runs, partial(_dev_scores, metric), False)
            for metric in validated_metrics(runs)
        ),
        _plot("Speed, source and target tokens a second", runs, _speed, True),
        _plot("Learning rate", runs, _learning_rate, True),
    ]
    return [plot for plot in wanted if any(curve.finite for curve in plot.curves)]


def _plot(
    title: str, runs: Sequence[Run], points: Callable[[Run], Points], from_zero: bool
) -> Plot:
    curves = [Curve(run.name, thinned(points(run), MAX_POINTS)) for run in runs]
    return Plot(title, curves, from_zero)


def _training_loss(run: Run) -> Points:
    return [(record.update, record.loss) for record in run.training]


def _dev_nll(run: Run) -> Points:
    return [(record.update, record.nll) for record in run.validations]


def _dev_scores(metric: str, run: Run) -> Points:
    return [(record.update, record.scores.get(metric, math.nan)) for record in run.validations]


def _speed(run: Run) -> Points:
    return [(record.update, record.tokens_per_second) for record in run.training]


def _learning_rate(run: Run) -> Points:
    return [(record.update, record.learning_rate) for record in run.training]
