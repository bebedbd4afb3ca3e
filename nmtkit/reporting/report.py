"""The report on training runs: its sections, its plots, and how it is written.

The plots are of loss, nll, scores, speed and learning rate; each has its curves over the updates,
the time and the tokens of training.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from nmtkit.config.metrics import NLL, label_of
from nmtkit.progress.records import TrainingRecord
from nmtkit.reporting import page
from nmtkit.reporting.page import Section, check_is_free, markdown, markdown_text
from nmtkit.reporting.paper import table2
from nmtkit.reporting.run_tables import (
    TRAINING_LOSS,
    comparable_by,
    dates_of,
    origins,
    samples,
    settings,
    split_evenly,
    summary,
    validations,
    warnings,
)
from nmtkit.reporting.runs import Run, validated_metrics, value_of
from nmtkit.reporting.svg import Curve, Plot, Points
from nmtkit.reporting.verdict import verdict
from nmtkit.version import __version__

MAX_POINTS = 500
"""Points per curve; a screen shows no more."""

_MAX_KEPT_PER_BUCKET = 5


@dataclass(frozen=True)
class Report:
    """The verdict and the sections of a report.

    Attributes:
        runs: the runs.
        verdict: a sentence about them.
        overview: the sections before the plots.
        details: the sections after them.
    """

    runs: Sequence[Run]
    verdict: str
    overview: Sequence[Section]
    details: Sequence[Section]


def report_on(runs: Sequence[Run], with_paper: bool) -> Report:
    """Compose the report on runs, at least one.

    Args:
        runs: the runs.
        with_paper: add the costs that the paper compares, and its table 2 at the end.

    Raises:
        ConfigError: SACREBLEU_SEED is not valid.
    """
    compared = [settings(runs)] if len(runs) > 1 else []
    paper = [table2(runs)] if with_paper else []
    details = [*compared, validations(runs), *samples(runs), *origins(runs), *paper]
    return Report(runs, verdict(runs), [summary(runs, with_paper), warnings(runs)], details)


def markdown_of(report: Report) -> list[str]:
    """Return a report without its plots as lines of Markdown."""
    return [markdown_text(report.verdict), "", *markdown([*report.overview, *report.details])]


def write_page(report: Report, path: Path, overwrite: bool) -> None:
    """Write a report with its plots as an HTML file.

    Args:
        report: the report.
        path: the file; its folder is created if missing.
        overwrite: replace an existing file.

    Raises:
        ConfigError: the file exists and `overwrite` is off, or the path is impossible.
        ResourceError: the file cannot be written.
    """
    check_is_free(path, overwrite)
    title = f"Training of {', '.join(run.name for run in report.runs)}"
    dates = [f"started {one}" for one in [dates_of(report.runs)] if one]
    origin = " \u00b7 ".join([*dates, f"nmtkit {__version__}"])
    plots = figures(report.runs)
    text = page.page(title, report.verdict, origin, report.overview, plots, report.details)
    page.write_page(path, text)


@dataclass(frozen=True)
class XAxis:
    """A quantity that grows with the updates of a run.

    Attributes:
        totals: returns it at each training record.
        units: the names of its units, with their sizes from large to small.
    """

    totals: Callable[[Run], Sequence[float]]
    units: Mapping[str, float]

    def over(self, runs: Sequence[Run], plot: Plot) -> Plot:
        """Return a plot over this quantity from a plot of the runs over updates."""
        totals = [self.totals(run) for run in runs]
        most = max(total[-1] for total in totals)
        *larger, (unit, _) = self.units.items()
        unit = next((name for name, size in larger if most >= size), unit)
        curves = []
        for run, total, curve in zip(runs, totals, plot.curves, strict=True):
            known = [(0, 0), *zip((one.update for one in run.training), total, strict=True)]
            points = [(_interpolated(x, known) / self.units[unit], y) for x, y in curve.points]
            curves.append(Curve(curve.name, points))
        return Plot(plot.title, curves, plot.from_zero, unit)


X_AXES = {
    "updates": XAxis(lambda run: [one.update for one in run.training], {"updates": 1}),
    "time": XAxis(
        lambda run: [one.elapsed_s for one in run.training],
        {"hours": 3600, "minutes": 60, "seconds": 1},
    ),
    "tokens": XAxis(
        lambda run: [
            *accumulate(one.num_source_tokens + one.num_target_tokens for one in run.training)
        ],
        {"billion tokens": 1e9, "million tokens": 1e6, "thousand tokens": 1e3, "tokens": 1},
    ),
}
"""The quantities of the x axis; time is that of all sessions, and tokens are of both sides."""


def figures(runs: Sequence[Run]) -> list[dict[str, Plot]]:
    """Return the plots of all runs over each of X_AXES, without empty ones."""
    return [{name: axis.over(runs, plot) for name, axis in X_AXES.items()} for plot in _plots(runs)]


def _plots(runs: Sequence[Run]) -> list[Plot]:
    """Return the plots over updates."""

    def of_training(title: str, value: Callable[[TrainingRecord], float], from_zero: bool) -> Plot:
        points = [[(one.update, value(one)) for one in run.training] for run in runs]
        return _plot(title, runs, points, from_zero)

    def of_validation(name: str, metric: str) -> Plot:
        points = [[(one.update, value_of(metric, one)) for one in run.validations] for run in runs]
        return _plot(name + _caveat(metric, runs), runs, points, False)

    loss = "Training loss, label-smoothed, nats per token" + _caveat(TRAINING_LOSS, runs)
    speed = "Speed, source and target tokens per second"
    wanted = [
        of_training(loss, lambda one: one.loss, False),
        of_validation("Dev nll, nats per token", NLL),
        *(of_validation(f"Dev {label_of(one)}", one) for one in validated_metrics(runs)),
        of_training(speed, lambda one: one.tokens_per_second, True),
        of_training("Learning rate", lambda one: one.learning_rate, True),
    ]
    return [plot for plot in wanted if any(curve.finite for curve in plot.curves)]


def _plot(title: str, runs: Sequence[Run], points: Sequence[Points], from_zero: bool) -> Plot:
    curves = [
        Curve(run.name, thinned(own, MAX_POINTS)) for run, own in zip(runs, points, strict=True)
    ]
    return Plot(title, curves, from_zero)


def _caveat(result: str, runs: Sequence[Run]) -> str:
    """Return the end of the title of a plot whose curves do not all compare."""
    return " (not comparable)" if len(comparable_by(result, runs)) > 1 else ""


def _interpolated(x: float, known: Points) -> float:
    """Return y at x, between the known points, which ascend; beyond the last one, its y."""
    index = min(bisect_left(known, x, key=itemgetter(0)), len(known) - 1)
    end, high = known[index]
    if index == 0 or x >= end:
        return high
    start, low = known[index - 1]
    return low + (x - start) / (end - start) * (high - low)


def thinned(points: Points, max_points: int) -> Points:
    """Thin a curve to at most `max_points` points, keeping its outline.

    Each bucket keeps its first, last, lowest and highest point, and the first that is not finite.
    """
    if len(points) <= max_points:
        return points
    parts = split_evenly(points, max_points // _MAX_KEPT_PER_BUCKET)
    return [part[index] for part in parts for index in _extremes(part)]


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
