"""The output of `nmtkit score`: lines, sections of tables, or one JSON object per system."""

from collections.abc import Iterator, Sequence
from typing import Any

from nmtkit.evaluation.evaluate import Evaluation
from nmtkit.evaluation.metric import Score
from nmtkit.reporting.document import NOTHING, Cell, Section, Table, markdown


def as_text(evaluation: Evaluation) -> list[str]:
    """Return a line per metric; Markdown for several systems or with a breakdown."""
    if len(evaluation.systems) > 1 or evaluation.lengths or evaluation.frequencies:
        return markdown(
            [_overview(evaluation), *_by_length(evaluation), *_by_frequency(evaluation)]
        )
    return [_line(score) for (score,) in evaluation.scores]


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
            columns.append([_p_value(score) for score in scores])
    if "p" in headers:
        sentences.append(
            f"p: the probability of a difference from {evaluation.systems[0]} at least this large, "
            "if the systems are equal"
        )
    return Section("Scores", Table(headers, list(zip(*columns, strict=True))), sentences)


def _by_length(evaluation: Evaluation) -> Iterator[Section]:
    if not evaluation.lengths:
        return
    for of_systems, of_classes in zip(evaluation.scores, evaluation.length_scores, strict=True):
        rows = [
            [Cell(one.label), Cell(str(len(one.indices))), *_cells(scores)]
            for one, scores in zip(evaluation.lengths, of_classes, strict=True)
        ]
        headers = ["words", "sentences", *evaluation.systems]
        yield Section(f"{of_systems[0].name} by sentence length", Table(headers, rows), [])


def _by_frequency(evaluation: Evaluation) -> Iterator[Section]:
    if not evaluation.frequencies:
        return
    rows = []
    for classes in zip(*evaluation.frequencies, strict=True):
        label, num_words = classes[0].label, classes[0].num_words
        figures = [Cell(f"{one.f1:.2f}") if num_words else NOTHING for one in classes]
        rows.append([Cell(label), Cell(str(num_words)), *figures])
    headers = ["occurrences", "words", *evaluation.systems]
    yield Section("F1 of words by frequency", Table(headers, rows), [])


def _cells(scores: Sequence[Score]) -> list[Cell]:
    """Return the cells of the systems' scores, the best in bold if there are several."""
    choose = max if scores[0].is_higher_better else min
    best = choose(score.score for score in scores)
    is_several = len(scores) > 1
    return [Cell(_figure(score), is_several and score.score == best) for score in scores]


def _p_value(score: Score) -> Cell:
    return NOTHING if score.p_value is None else Cell(f"{score.p_value:.4f}")
