"""The page of `nmtkit score --html`: systems compared on one reference.

It has a table of all scores, plots and tables by sentence length and word frequency, and the data
of its script: texts once, scores as lists of numbers.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import takewhile
from typing import Any

from nmtkit.evaluation.breakdown import MIN_DIFFERENCE
from nmtkit.evaluation.evaluate import Comparison, Evaluation
from nmtkit.evaluation.metric import Score
from nmtkit.reporting.page import (
    document,
    embedded,
    table_element,
)
from nmtkit.reporting.scores import Breakdown, breakdowns
from nmtkit.reporting.svg import Axis, Curve, Plot, draw, fit_axis, visible_text, xml_text
from nmtkit.units import counted
from nmtkit.version import __version__

_PARTS = re.compile(r"[^/._-]+|[/._-]")
_SEPARATORS = "/._-"


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names of files without their common ends and beginnings.

    The end goes first, as it is the suffix. A beginning stays if only a number would follow it.
    No name becomes empty.
    """
    if len(names) == 1:
        name = visible_text(names[0])
        return [name.rpartition("/")[2] or name]
    parts = [_PARTS.findall(visible_text(name)) for name in names]
    parts = [one[::-1] for one in _without_common_start([one[::-1] for one in parts])]
    without_folder = _without_common_start(parts, only_folders=True)
    shortest = _without_common_start(without_folder)
    chosen = shortest if all(map(_has_letter, shortest)) else without_folder
    labels = ["".join(one).strip(_SEPARATORS) or "".join(one) for one in chosen]
    return labels if len(set(labels)) == len(set(names)) else list(map(visible_text, names))


def _without_common_start(parts: list[list[str]], only_folders: bool = False) -> list[list[str]]:
    """Drop the parts with which all lists begin; each list keeps at least one."""
    places = zip(*(one[:-1] for one in parts), strict=False)
    common = [one[0] for one in takewhile(lambda one: len({*one}) == 1, places)]
    while only_folders and common and common[-1] != "/":
        common.pop()
    return [one[len(common) :] for one in parts]


def _has_letter(parts: list[str]) -> bool:
    return any(character.isalpha() for part in parts for character in part)


_DIGITS = 2
"""Decimal places of sentence scores, as `--sentence-level` prints them."""


def page_data(comparison: Comparison, labels: Sequence[str]) -> dict[str, Any]:
    """Return what the script of the page reads, as values of JSON.

    Args:
        comparison: the comparison.
        labels: short names of the systems.

    Returns:
        `second`: index of the system that is compared with the first one at the beginning.
        `source`: lines, or None; `reference`: lines; `translations`: per system, its lines.
        `scores`: per system, the score of each line by `metric`.
        `lengths`: names of the classes of length; `length_of`: per line, the index of its class.
        `ngrams`: words joined by spaces, their number, matches per system, occurrences in the
            reference.
        `min_difference`: matches that a system has more than the other one in `ngrams` of both.
    """
    texts, metric = comparison.texts, comparison.line_metric
    lengths = comparison.evaluation.lengths
    length_of = {index: number for number, one in enumerate(lengths) for index in one.indices}
    return {
        "systems": labels,
        "metric": metric.name,
        "is_higher_better": metric.is_higher_better,
        "second": _best_other(comparison),
        "source": None if texts.source is None else texts.source.lines,
        "reference": texts.references[0].lines,
        "translations": [system.lines for system in texts.systems],
        "scores": [
            [round(score, _DIGITS) for score in scores] for scores in comparison.line_scores
        ],
        "lengths": [one.label for one in lengths],
        "length_of": [length_of[index] for index in range(len(length_of))],
        "ngrams": [
            (" ".join(words), len(words), counts) for words, counts in comparison.ngrams.items()
        ],
        "min_difference": MIN_DIFFERENCE,
    }


def _best_other(comparison: Comparison) -> int:
    """Return the index of the best system except the first one; without one, of the reference."""
    scores = comparison.evaluation.scores[0]
    sign = 1 if scores[0].is_higher_better else -1
    others = range(1, len(scores))
    return max(others, key=lambda index: sign * scores[index].score, default=len(scores))


def figure(part: Breakdown, labels: Sequence[str]) -> str:
    """Return the element of a figure: the plot, a line for the values at a cursor, the table."""
    curves = [
        Curve(name, [(place, row[number]) for place, row in enumerate(part.values)])
        for number, name in enumerate(labels)
    ]
    best = "" if part.is_higher_better else ", lower is better"
    plot = Plot(
        part.title + best,
        curves,
        from_zero=False,
        x_label=part.headers[0],
        categories=[name for name, _ in part.classes],
    )
    has_points = any(curve.finite for curve in curves)
    drawn = [draw(plot), "<output></output>"] if has_points else []
    table = table_element(part.table(labels))
    parts = [*drawn, f"<details><summary>Values</summary>{table}</details>"]
    return "\n".join(["<figure>", *parts, "</figure>"])


_SIGNIFICANT = 0.05

# Pixels.
_WIDTH, _HEIGHT, _MARGIN, _RADIUS = 120, 20, 6, 4.5
_MIDDLE = _HEIGHT / 2


def overview(evaluation: Evaluation, labels: Sequence[str], lengths: Sequence[float]) -> str:
    """Return the table of scores.

    Args:
        evaluation: the scores.
        labels: the short names of the systems.
        lengths: per system, its words per word of the reference.
    """
    systems = [
        f'<th scope="row" title="{xml_text(name)}"><span class="name">{escape(label)}</span></th>'
        for label, name in zip(labels, evaluation.systems, strict=True)
    ]
    columns = [
        ('<th scope="col">system</th>', systems),
        *(column for scores in evaluation.scores for column in _columns(scores)),
        ('<th scope="col">length</th>', [f"<td>{length:.3f}</td>" for length in lengths]),
    ]
    header = "".join(header for header, _ in columns)
    rows = zip(*(cells for _, cells in columns), strict=True)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table class="scores"><thead><tr>{header}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def notes(evaluation: Evaluation, first: str) -> list[str]:
    """Return what a reader needs to know about the table.

    Args:
        evaluation: the scores.
        first: the short name of the first system.
    """
    scores = [score for of_systems in evaluation.scores for score in of_systems]
    found = ["length: words of the translation per word of the reference."]
    if any(score.interval for score in scores):
        found.append("Lines are 95 % confidence intervals by the bootstrap.")
    else:
        found.append("Add --confidence for confidence intervals.")
    if any(score.p_value is not None for score in scores):
        found.append(
            f"p: the probability of a difference from {first} at least this large, if the systems "
            "are equal. An arrow marks a p below 0.05 and its direction: up is better."
        )
    elif len(evaluation.systems) > 1:
        found.append(f"Add --paired-ar to test each system against {first}.")
    return found


def _columns(scores: Sequence[Score]) -> Iterator[tuple[str, list[str]]]:
    """Yield the header and the cells of a metric's scores, and of its p-values if there are any."""
    first = scores[0]
    better, choose = ("higher", max) if first.is_higher_better else ("lower", min)
    ends = [end for score in scores for end in (score.score, *_interval(score))]
    axis = fit_axis(ends, (_MARGIN, _WIDTH - _MARGIN), from_zero=False)
    best = choose(score.score for score in scores)
    cells = []
    for score in scores:
        text = f"{score.score:.2f}"
        if len(scores) > 1 and score.score == best:
            text = f"<strong>{text}</strong>"
        if score.interval is not None:
            text += f"<small> \u00b1 {score.interval.half_width:.2f}</small>"
        cells.append(f'<td class="strip">{_strip(score, axis)}</td><td class="value">{text}</td>')
    name = f"{escape(first.name)} <small>{better} is better</small>"
    yield f'<th scope="col" colspan="2">{name}</th>', cells
    if any(score.p_value is not None for score in scores):
        cells = [f'<td class="p">{_p_value(score, first)}</td>' for score in scores]
        yield '<th scope="col">p</th>', cells


def _p_value(score: Score, first: Score) -> str:
    if score.p_value is None:
        return "-"
    text = f"{score.p_value:.4f}"
    if score.p_value >= _SIGNIFICANT:
        return text
    is_better = (score.score > first.score) == score.is_higher_better
    kind, arrow, word = ("up", "\u25b2", "better") if is_better else ("down", "\u25bc", "worse")
    return f'<span class="{kind}" title="significantly {word}">{arrow}</span> {text}'


def _interval(score: Score) -> tuple[float, ...]:
    """Return both ends of the interval, if there is one."""
    if score.interval is None:
        return ()
    mean, half_width = score.interval.mean, score.interval.half_width
    return (mean - half_width, mean + half_width)


def _strip(score: Score, axis: Axis) -> str:
    ends = [f"{axis.pixel(end):.1f}" for end in _interval(score)]
    line = f'<path class="interval" d="M{ends[0]},{_MIDDLE} H{ends[1]}"/>' if ends else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'aria-hidden="true"><path class="base" d="M0,{_MIDDLE} H{_WIDTH}"/>{line}'
        f'<circle cx="{axis.pixel(score.score):.1f}" cy="{_MIDDLE}" r="{_RADIUS}"/></svg>'
    )


_FILES = (
    *("page.html", "plot.css", "page.css", "report.js", "controls.js"),
    *("words.js", "state.js", "ngrams.js", "sentences.js", "page.js"),
)


def page(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    texts = comparison.texts
    labels = short_names([system.name for system in texts.systems])
    num_lines = len(texts.references[0].lines)
    evaluation = comparison.evaluation
    signatures = [f"{scores[0].name}: {scores[0].signature}" for scores in evaluation.scores]
    signatures.append(
        f"{comparison.line_metric.name} of a sentence: {comparison.line_metric.line_signature()}"
    )
    parts = {
        "overview": overview(evaluation, labels, _lengths(comparison)),
        "notes": xml_text(" ".join(notes(evaluation, labels[0]))),
        "figures": "\n".join(figure(one, labels) for one in breakdowns(evaluation)),
        "counted": xml_text(_last(comparison.counted_text)),
        "files": _files(comparison, labels),
        "signatures": "".join(f"<li>{xml_text(one)}</li>" for one in signatures),
        "data": embedded(page_data(comparison, labels)),
    }
    return document(
        f"{counted(len(labels), 'systems')} on {_last(texts.references[0].name)}",
        f"{counted(num_lines, 'sentences')} \u00b7 nmtkit {__version__}",
        __package__,
        _FILES,
        parts,
    )


def _lengths(comparison: Comparison) -> list[float]:
    """Return each system's words per word of the reference."""
    return [
        sum(one.num_translated for one in classes) / max(1, sum(one.num_words for one in classes))
        for classes in comparison.evaluation.frequencies
    ]


def _files(comparison: Comparison, labels: Sequence[str]) -> str:
    """Return the list of all texts by their names on the page."""
    texts = comparison.texts
    named = [*zip(labels, texts.systems, strict=True)]
    named += [("reference", one) for one in texts.references]
    if comparison.texts.source is not None:
        named.append(("source", comparison.texts.source))
    names = [(label, text.name) for label, text in named]
    names.append(("word frequencies", comparison.counted_text))
    return "".join(f"<dt>{xml_text(label)}</dt><dd>{xml_text(name)}</dd>" for label, name in names)


def _last(name: str) -> str:
    return visible_text(name).rpartition("/")[2]
