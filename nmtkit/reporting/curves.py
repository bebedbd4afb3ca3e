"""Curves of runs: which are drawn, thinned to what a screen can show."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

from nmtkit.config.metrics import METRICS
from nmtkit.reporting.runs import Run, validated_metrics
from nmtkit.reporting.svg import Curve, Plot, Points

Item = TypeVar("Item")

MAX_POINTS = 500
"""Of a curve; a screen would not show more."""

_KEPT_OF_A_BUCKET = 5


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


def thinned(points: Points, max_points: int) -> Points:
    """Return a curve of at most `max_points` points that looks like another.

    Of each of its parts stay the first and the last point, the lowest and the highest, and one
    that is not finite, if there is any.
    """
    if len(points) <= max_points:
        return points
    parts = buckets(points, max_points // _KEPT_OF_A_BUCKET)
    return [part[index] for part in parts for index in _extremes(part)]


def buckets(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Split a sequence into `count` parts whose lengths differ by at most one."""
    ends = [len(items) * number // count for number in range(count + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


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


def _extremes(points: Points) -> list[int]:
    """Return the indices of the points that stay, in their order."""
    heights = [height for _, height in points]
    finite = [height for height in heights if math.isfinite(height)]
    kept = {0, len(points) - 1}
    if finite:
        kept |= {heights.index(min(finite)), heights.index(max(finite))}
    if len(finite) < len(heights):
        kept.add(next(i for i, height in enumerate(heights) if not math.isfinite(height)))
    return sorted(kept)
