"""The table of all scores, with a strip per score: a dot, and its interval as a line."""

from collections.abc import Iterator, Sequence
from html import escape

from nmtkit.evaluation.evaluate import Evaluation
from nmtkit.evaluation.metric import Score
from nmtkit.reporting.axis import Axis, fit_axis
from nmtkit.reporting.svg_text import xml_text

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
    header = '<tr><th scope="col">system</th>'
    header += "".join(_header(scores) for scores in evaluation.scores)
    header += '<th scope="col">length</th></tr>'
    axes = [_axis(scores) for scores in evaluation.scores]
    rows = []
    for number, label in enumerate(labels):
        name = xml_text(evaluation.systems[number])
        cells = [f'<th scope="row" title="{name}"><span class="name">{escape(label)}</span></th>']
        for scores, axis in zip(evaluation.scores, axes, strict=True):
            cells += _cells(scores, number, axis)
        cells.append(f"<td>{lengths[number]:.3f}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table class="scores"><thead>{header}</thead>\n'
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


def _header(scores: Sequence[Score]) -> str:
    better = "higher" if scores[0].is_higher_better else "lower"
    name = f"{escape(scores[0].name)} <small>{better} is better</small>"
    tested = '<th scope="col">p</th>' if _is_tested(scores) else ""
    return f'<th scope="col" colspan="2">{name}</th>{tested}'


def _cells(scores: Sequence[Score], number: int, axis: Axis) -> Iterator[str]:
    score = scores[number]
    values = [one.score for one in scores]
    best = (max if score.is_higher_better else min)(values)
    text = f"{score.score:.2f}"
    if len(scores) > 1 and score.score == best:
        text = f"<strong>{text}</strong>"
    if score.interval is not None:
        text += f"<small> \u00b1 {score.interval.half_width:.2f}</small>"
    yield f'<td class="strip">{_strip(score, axis)}</td>'
    yield f'<td class="value">{text}</td>'
    if _is_tested(scores):
        yield f'<td class="p">{_p_value(score, scores[0])}</td>'


def _is_tested(scores: Sequence[Score]) -> bool:
    return any(score.p_value is not None for score in scores)


def _p_value(score: Score, first: Score) -> str:
    if score.p_value is None:
        return "-"
    text = f"{score.p_value:.4f}"
    if score.p_value >= _SIGNIFICANT:
        return text
    is_better = (score.score > first.score) == score.is_higher_better
    kind, arrow, word = ("up", "\u25b2", "better") if is_better else ("down", "\u25bc", "worse")
    return f'<span class="{kind}" title="significantly {word}">{arrow}</span> {text}'


def _axis(scores: Sequence[Score]) -> Axis:
    """Return the axis on which all scores of a metric and their intervals fit."""
    ends = [end for score in scores for end in (score.score, *_interval(score))]
    return fit_axis(ends, (_MARGIN, _WIDTH - _MARGIN), from_zero=False)


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
