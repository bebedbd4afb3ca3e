"""The flow of `nmtkit score`: systems and references -> scores and breakdowns."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmtkit.config.metrics import (
    METRICS,
    BreakdownConfig,
    MetricsConfig,
    SignificanceConfig,
    TargetType,
    metric_names,
)
from nmtkit.evaluation.breakdown import (
    FrequencyClass,
    LengthClass,
    by_frequency,
    by_length,
    count_words,
)
from nmtkit.evaluation.doubts import doubts
from nmtkit.evaluation.metric import Metric, Output, Score
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.significance import score_systems
from nmtkit.evaluation.texts import Texts
from nmtkit.parsing.evalb.metric import evalb_report, parse_doubts
from nmtkit.text.lines import read_lines


@dataclass(frozen=True)
class Evaluation:
    """The scores of systems.

    Attributes:
        systems: their names.
        scores: of each metric, one a system.
        lengths: classes of sentences by length; empty if that was not asked for.
        length_scores: of each metric, of each class, one a system.
        frequencies: of each system, classes of words by frequency; empty if not asked for.
    """

    systems: Sequence[str]
    scores: Sequence[Sequence[Score]]
    lengths: Sequence[LengthClass]
    length_scores: Sequence[Sequence[Sequence[Score]]]
    frequencies: Sequence[Sequence[FrequencyClass]]


def evaluate(
    texts: Texts,
    metrics: Sequence[Metric],
    significance: SignificanceConfig,
    breakdown: BreakdownConfig,
) -> Evaluation:
    """Score systems, and break the scores down as asked for.

    Args:
        texts: checked.
        metrics: to score by.
        significance: which intervals and tests are asked for.
        breakdown: which classes are asked for; they are those of the first reference. Where
            metrics have different ideas of a line's text, lengths are the first one's.

    Raises:
        ConfigError, DataError: see `score_systems`; or the text to count words in cannot be read.
    """
    reference = texts.references[0].lines
    lengths = []
    if breakdown.by_length:
        lengths = by_length([metrics[0].text_of(line) for line in reference])
    frequencies = []
    if breakdown.by_frequency:
        counts = count_words(read_lines(Path(breakdown.by_frequency)))
        frequencies = [by_frequency(system.lines, reference, counts) for system in texts.systems]
    scores, length_scores = [], []
    for metric in metrics:
        prepared = texts.map(metric.prepare)
        scores.append(score_systems(metric, prepared, significance))
        parts = [prepared.select(one.indices) for one in lengths]
        length_scores.append([score_systems(metric, part, SignificanceConfig()) for part in parts])
    names = [system.name for system in texts.systems]
    return Evaluation(names, scores, lengths, length_scores, frequencies)


def score_lines(texts: Texts, metrics: Sequence[Metric]) -> Iterator[list[float]]:
    """Yield the scores of each line of a system, one a metric.

    Args:
        texts: checked.
        metrics: to score by.

    Raises:
        ConfigError: there are several systems.
    """
    system = texts.only_system()
    prepared = [texts.map(metric.prepare) for metric in metrics]
    for index in range(len(system.lines)):
        yield [
            metric.score_line(
                own.systems[0].lines[index], [one.lines[index] for one in own.references]
            )
            for metric, own in zip(metrics, prepared, strict=True)
        ]


def line_report(config: MetricsConfig) -> Callable[[Texts, bool], Iterator[Output]]:
    """Return the function that scores each line of texts, as JSON or not, by these metrics.

    Raises:
        ConfigError: see `make_metrics`; from the function, see `score_lines`.
    """
    return partial(_report_lines, make_metrics(config))


def _report_lines(metrics: Sequence[Metric], texts: Texts, as_json: bool) -> Iterator[Output]:
    for scores in score_lines(texts, metrics):
        table = {metric.name: score for metric, score in zip(metrics, scores, strict=True)}
        yield Output(
            [json.dumps(table) if as_json else "\t".join(f"{score:.2f}" for score in scores)]
        )
    yield Output([], [f"{metric.name}: {metric.line_signature()}" for metric in metrics])


@dataclass(frozen=True)
class LineType:
    """The treatment of a type of lines.

    Attributes:
        doubts: warnings about checked texts.
        line_report: see the function of this name.
    """

    doubts: Callable[[Texts], Iterator[str]]
    line_report: Callable[[MetricsConfig], Callable[[Texts, bool], Iterator[Output]]]


LINE_TYPES: dict[TargetType, LineType] = {
    "text": LineType(doubts, line_report),
    "trees": LineType(parse_doubts, evalb_report),
}
"""Types of lines that metrics compare."""


def line_type(config: MetricsConfig) -> LineType:
    """Return the type of the lines that metrics compare, which is the same for all of them."""
    return LINE_TYPES[METRICS[metric_names(config.metric)[0]].compares]
