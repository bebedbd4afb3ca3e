"""The output of `nmtkit score`: lines, sections of tables, or one JSON object per system.

Its page draws the same breakdowns by length and frequency.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nmtkit.evaluation.evaluate import Evaluation
from nmtkit.evaluation.metric import Score
from nmtkit.reporting.page import NOTHING, Cell, Section, Table, cell, markdown


def as_text(evaluation: Evaluation) -> list[str]:
    """Return a line per metric; Markdown for several systems or with a breakdown."""
    if len(evaluation.systems) > 1 or evaluation.lengths or evaluation.frequencies:
        parts = breakdowns(evaluation)
        sections = (Section(one.title, one.table(evaluation.systems), []) for one in parts)
        return markdown([_overview(evaluation), *sections])
    return [_line(score) for (score,) in evaluation.scores]


@dataclass(frozen=True)
class Breakdown:
    """Values of systems by the lengths of sentences, or by the frequencies of words.

    Attributes:
        title: the value, and by what it is broken down.
        headers: what the classes are of, and what is counted in each.
        classes: the name of each class, and its count.
        values: per class, the value of each system; NaN = none.
        is_higher_better: whether the highest value is the best one.
    """

    title: str
    headers: tuple[str, str]
    classes: Sequence[tuple[str, int]]
    values: Sequence[Sequence[float]]
    is_higher_better: bool

    def table(self, systems: Sequence[str]) -> Table:
        """Return the table of the values; the best of several in a row is bold."""
        rows = []
        for (name, count), values in zip(self.classes, self.values, strict=True):
            best = (max if self.is_higher_better else min)(values)
            cells = [
                Cell(f"{one:.2f}", len(values) > 1 and one == best)
                if math.isfinite(one)
                else NOTHING
                for one in values
            ]
            rows.append([Cell(name), Cell(str(count)), *cells])
        return Table([*self.headers, *systems], rows)


def breakdowns(found: Evaluation) -> Iterator[Breakdown]:
    """Yield the scores of each metric by length, and F1 by frequency, if there are classes."""
    lengths = [(one.label, len(one.indices)) for one in found.lengths]
    if lengths:
        for of_systems, of_classes in zip(found.scores, found.length_scores, strict=True):
            values = [[score.score for score in of_class] for of_class in of_classes]
            title = f"{of_systems[0].name} by sentence length"
            headers = ("reference words", "sentences")
            yield Breakdown(title, headers, lengths, values, of_systems[0].is_higher_better)
    if found.frequencies:
        rows = [row for row in zip(*found.frequencies, strict=True) if row[0].num_words]
        frequencies = [(row[0].label, row[0].num_words) for row in rows]
        values = [[one.f1 for one in row] for row in rows]
        headers = ("occurrences", "words")
        yield Breakdown("F1 of words by frequency", headers, frequencies, values, True)


def as_objects(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each system: scores by metric, and breakdowns as lists."""
    for number, system in enumerate(evaluation.systems):
        scores = [of_systems[number] for of_systems in evaluation.scores]
        found: dict[str, Any] = {"system": system}
        found |= {score.name: _score_object(score) for score in scores}
        if evaluation.lengths:
            found["by_length"] = [
                {"words": one.label, "sentences": len(one.indices)}
                | {
                    score.name: of_classes[index][number].score
                    for score, of_classes in zip(scores, evaluation.length_scores, strict=True)
                }
                for index, one in enumerate(evaluation.lengths)
            ]
        if evaluation.frequencies:
            found["by_frequency"] = [
                {"occurrences": one.label, "words": one.num_words, "f1": one.f1}
                for one in evaluation.frequencies[number]
            ]
        yield found


def _score_object(score: Score) -> dict[str, Any]:
    found: dict[str, Any] = {"score": score.score, "signature": score.signature}
    if score.details:
        found["details"] = score.details
    if score.interval is not None:
        found |= {"mean": score.interval.mean, "half_width": score.interval.half_width}
    if score.p_value is not None:
        found["p_value"] = score.p_value
    return found | dict(score.figures)


def _line(score: Score) -> str:
    figures = f"{_figure(score)} {score.details}".rstrip()
    return f"{score.name} = {figures}  {score.signature}"


def _figure(score: Score) -> str:
    """Write a score as sacreBLEU does; with its bootstrap mean and interval, if there is one."""
    if score.interval is None:
        return f"{score.score:.2f}"
    interval = f"\u03bc = {score.interval.mean:.2f} \u00b1 {score.interval.half_width:.2f}"
    return f"{score.score:.2f} ({interval})"


def _overview(evaluation: Evaluation) -> Section:
    headers = ["system"]
    columns: list[list[Cell]] = [[Cell(name) for name in evaluation.systems]]
    sentences = [f"{scores[0].name}: {scores[0].signature}" for scores in evaluation.scores]
    for scores in evaluation.scores:
        headers.append(scores[0].name)
        columns.append(_cells(scores))
        if any(score.p_value is not None for score in scores):
            headers.append("p")
            columns.append([cell(score.p_value, ".4f") for score in scores])
    if "p" in headers:
        sentences.append(
            f"p: the probability of a difference from {evaluation.systems[0]} at least this large, "
            "if the systems are equal"
        )
    return Section("Scores", Table(headers, list(zip(*columns, strict=True))), sentences)


def _cells(scores: Sequence[Score]) -> list[Cell]:
    """Return the cells of the systems' scores, the best in bold if there are several."""
    choose = max if scores[0].is_higher_better else min
    best = choose(score.score for score in scores)
    is_several = len(scores) > 1
    return [Cell(_figure(score), is_several and score.score == best) for score in scores]
