"""Scores by sentence length, and F1 of words by frequency: a plot each, and its table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nmtkit.evaluation.compare import Comparison
from nmtkit.reporting.document import NOTHING, Cell, Table
from nmtkit.reporting.page import table_element
from nmtkit.reporting.svg import Curve, Plot, draw


@dataclass(frozen=True)
class Figure:
    """A plot with its values as a table."""

    plot: Plot
    table: Table


def length_figures(comparison: Comparison, labels: Sequence[str]) -> list[Figure]:
    """Return a figure per metric: scores of the sentences of each length."""
    classes = comparison.lengths
    counts = [str(len(one.indices)) for one in classes]
    found = []
    for of_systems, of_classes in zip(
        comparison.evaluation.scores, comparison.length_scores, strict=True
    ):
        values = [[score.score for score in scores] for scores in of_classes]
        is_higher_better = of_systems[0].is_higher_better
        best = "" if is_higher_better else ", lower is better"
        plot = _plot(
            f"{of_systems[0].name} by sentence length{best}",
            values,
            labels,
            ("words of the reference", [one.label for one in classes]),
        )
        table = _table(plot, ("sentences", counts), values, is_higher_better)
        found.append(Figure(plot, table))
    return found


def frequency_figure(comparison: Comparison, labels: Sequence[str]) -> Figure:
    """Return the figure of F1 of the words of each frequency."""
    rows = [row for row in zip(*comparison.frequencies, strict=True) if row[0].num_words]
    values = [[one.f1 for one in row] for row in rows]
    names = [row[0].label for row in rows]
    plot = _plot("F1 of words by frequency", values, labels, ("occurrences", names))
    counts = [str(row[0].num_words) for row in rows]
    return Figure(plot, _table(plot, ("words", counts), values, is_higher_better=True))


def figure_element(figure: Figure) -> str:
    """Return the element of a figure: the plot, a line for the values at a cursor, the table."""
    has_points = any(curve.finite for curve in figure.plot.curves)
    drawn = [draw(figure.plot), "<output></output>"] if has_points else []
    table = table_element(figure.table)
    parts = [*drawn, f"<details><summary>Values</summary>{table}</details>"]
    return "\n".join(["<figure>", *parts, "</figure>"])


def _plot(
    title: str,
    values: Sequence[Sequence[float]],
    labels: Sequence[str],
    axis: tuple[str, Sequence[str]],
) -> Plot:
    """Make a plot of values per class and system over an axis: its label, its classes."""
    label, classes = axis
    curves = [
        Curve(name, [(place, row[number]) for place, row in enumerate(values)])
        for number, name in enumerate(labels)
    ]
    return Plot(title, curves, from_zero=False, x_label=label, categories=classes)


def _table(
    plot: Plot,
    counts: tuple[str, Sequence[str]],
    values: Sequence[Sequence[float]],
    is_higher_better: bool,
) -> Table:
    """Make the table of a plot, with a column of counts: its header, its cells."""
    header, numbers = counts
    headers = [plot.x_label, header, *(curve.name for curve in plot.curves)]
    rows = [
        [Cell(name), Cell(number), *_cells(row, is_higher_better)]
        for name, number, row in zip(plot.categories, numbers, values, strict=True)
    ]
    return Table(headers, rows)


def _cells(values: Sequence[float], is_higher_better: bool) -> list[Cell]:
    """Return the cells of a row; the best of several values is bold."""
    best = (max if is_higher_better else min)(values)
    return [
        Cell(f"{one:.2f}", len(values) > 1 and one == best) if math.isfinite(one) else NOTHING
        for one in values
    ]
