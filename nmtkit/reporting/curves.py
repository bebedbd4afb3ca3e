"""The plots of a report: loss, nll, scores, speed and learning rate by update."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

from nmtkit.config.metrics import METRICS, NLL
from nmtkit.reporting.comparing import Groups, comparable_by, comparable_by_training_loss
from nmtkit.reporting.runs import Run, validated_metrics
from nmtkit.reporting.svg import Curve, Plot, Points

Item = TypeVar("Item")

MAX_POINTS = 500
"""Points per curve; a screen shows no more."""

_MAX_KEPT_PER_BUCKET = 5


def plots(runs: Sequence[Run]) -> list[Plot]:
    """Return the plots of all runs, without empty ones."""
    wanted = [
        _plot(
            "Training loss, label-smoothed, nats per token"
            + _caveat(comparable_by_training_loss(runs)),
            runs,
            _training_loss,
            False,
        ),
        _plot("Dev nll, nats per token" + _caveat(comparable_by(NLL, runs)), runs, _dev_nll, False),
        *(
            _plot(
                f"Dev {METRICS[metric].label}" + _caveat(comparable_by(metric, runs)),
                runs,
                partial(_dev_scores, metric),
                False,
            )
            for metric in validated_metrics(runs)
        ),
        _plot("Speed, source and target tokens per second", runs, _speed, True),
        _plot("Learning rate", runs, _learning_rate, True),
    ]
    return [plot for plot in wanted if any(curve.finite for curve in plot.curves)]


def thinned(points: Points, max_points: int) -> Points:
    """Thin a curve to at most `max_points` points, keeping its outline.

    Each bucket keeps its first, last, lowest and highest point, and the first that is not finite.
    """
    if len(points) <= max_points:
        return points
    parts = split_evenly(points, max_points // _MAX_KEPT_PER_BUCKET)
    return [part[index] for part in parts for index in _extremes(part)]


def split_evenly(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Split a sequence into `count` parts whose lengths differ by at most one."""
    ends = [len(items) * number // count for number in range(count + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


def _caveat(groups: Groups) -> str:
    """Return the end of the title of a plot whose curves do not all compare."""
    return " (not comparable)" if len(groups) > 1 else ""


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
    """Return the indices of the kept points, ascending."""
    heights = [height for _, height in points]
    finite = [height for height in heights if math.isfinite(height)]
    kept = {0, len(points) - 1}
    if finite:
        kept |= {heights.index(min(finite)), heights.index(max(finite))}
    if len(finite) < len(heights):
        kept.add(next(i for i, height in enumerate(heights) if not math.isfinite(height)))
    return sorted(kept)
