"""The flow of `nmtkit score`: systems and references -> scores and breakdowns.

`compare` returns everything that the page of `--html` shows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from nmtkit.config.metrics import (
    METRICS,
    BreakdownConfig,
    ComparedType,
    MetricsConfig,
    SignificanceConfig,
    metric_names,
)
from nmtkit.evaluation.breakdown import (
    FrequencyClass,
    LengthClass,
    NgramCounts,
    by_frequency,
    by_length,
    count_words,
    telling_ngrams,
)
from nmtkit.evaluation.metric import LineReport, Metric, Output, Score
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.significance import score_systems
from nmtkit.evaluation.texts import Texts, input_warnings, link_warnings
from nmtkit.parsing.evalb.metric import evalb_report, parse_warnings
from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.spans.markup_metric import markup_warnings
from nmtkit.text.lines import read_lines


@dataclass(frozen=True)
class Evaluation:
    """The scores of one or more systems.

    Attributes:
        systems: their names.
        scores: per metric, one score per system.
        lengths: classes of sentences by length; empty unless requested.
        length_scores: per metric and class of `lengths`, one score per system.
        frequencies: per system, classes of words by frequency; empty unless requested.
    """

    systems: Sequence[str]
    scores: Sequence[Sequence[Score]]
    lengths: Sequence[LengthClass]
    length_scores: Sequence[Sequence[Sequence[Score]]]
    frequencies: Sequence[Sequence[FrequencyClass]]

    def only(self, breakdown: BreakdownConfig) -> "Evaluation":
        """Return the evaluation with the requested breakdowns only."""
        found = self
        if not breakdown.by_length:
            found = replace(found, lengths=[], length_scores=[[] for _ in self.scores])
        return found if breakdown.by_frequency else replace(found, frequencies=[])


def evaluate(
    texts: Texts,
    metrics: Sequence[Metric],
    significance: SignificanceConfig,
    breakdown: BreakdownConfig,
    reporter: WorkReporter = SILENT,
) -> Evaluation:
    """Score systems by each metric, with the requested breakdowns.

    Args:
        texts: systems and references; `Texts.check` has passed.
        metrics: at least one.
        significance: the requested intervals and tests.
        breakdown: the requested breakdowns. Classes are those of the first reference; lengths are
            counted in the words of the first metric (`Metric.text_of`).
        reporter: receives the progress of scoring, and a message before long resampling.

    Raises:
        ConfigError, DataError: see `score_systems`; or the text to count words in cannot be read.
    """
    reference = texts.references[0].lines
    lengths = []
    if breakdown.by_length:
        lengths = by_length([metrics[0].text_of(line) for line in reference])
    frequencies = []
    if breakdown.by_frequency:
        frequencies = _by_frequency(texts, read_lines(Path(breakdown.by_frequency)))
    scores, length_scores = [], []
    for metric in metrics:
        prepared = prepare(texts, metric, reporter)
        scores.append(score_systems(metric, prepared, significance, reporter))
        length_scores.append(
            [
                score_systems(
                    metric,
                    prepared.select(one.indices),
                    SignificanceConfig(),
                    reporter,
                    f"{one.label} words",
                )
                for one in lengths
            ]
        )
    names = [system.name for system in texts.systems]
    return Evaluation(names, scores, lengths, length_scores, frequencies)


def _by_frequency(texts: Texts, counted: Iterable[str]) -> list[list[FrequencyClass]]:
    """Return the classes of each system, by the frequencies of words in a counted text."""
    counts, reference = count_words(counted), texts.references[0].lines
    return [by_frequency(system.lines, reference, counts) for system in texts.systems]


def prepare(texts: Texts, metric: Metric, reporter: WorkReporter) -> Texts:
    """Prepare all lines for a metric, which may tokenise them, and show the progress."""

    def prepare(line: str) -> str:
        prepared = metric.prepare(line)
        counting.add(1)
        return prepared

    if metric.replace is not None:
        num_lines = sum(len(system.lines) for system in texts.systems)
        with reporter.counting(f"scored by {metric.name}:", "lines", num_lines) as counting:
            return metric.replace(texts, lambda: counting.add(1))
    num_lines = sum(len(text.lines) for text in (*texts.systems, *texts.references))
    with reporter.counting(f"prepared for {metric.name}:", "lines", num_lines) as counting:
        return texts.map(prepare)


def score_lines(
    texts: Texts, metrics: Sequence[Metric], reporter: WorkReporter = SILENT
) -> Iterator[list[float]]:
    """Yield the scores of each line of one system, one score per metric.

    Args:
        texts: one system and its references; `Texts.check` has passed.
        metrics: at least one.
        reporter: receives the progress.

    Raises:
        ConfigError: there are several systems.
    """
    num_lines = len(texts.only_system().lines)
    prepared = [prepare(texts, metric, reporter) for metric in metrics]
    with reporter.track(range(num_lines), "scored", "lines", num_lines) as indices:
        for index in indices:
            yield [
                metric.score_line(
                    own.systems[0].lines[index], [one.lines[index] for one in own.references]
                )
                for metric, own in zip(metrics, prepared, strict=True)
            ]


def line_report(config: MetricsConfig) -> LineReport:
    """Return a function that scores each line of texts by these metrics.

    Raises:
        ConfigError: see `make_metrics`; the returned function raises as `score_lines`.
    """
    return partial(_report_lines, make_metrics(config))


def _report_lines(
    metrics: Sequence[Metric], texts: Texts, as_json: bool, reporter: WorkReporter
) -> Iterator[Output]:
    for scores in score_lines(texts, metrics, reporter):
        table = {metric.name: score for metric, score in zip(metrics, scores, strict=True)}
        yield Output(
            [json.dumps(table) if as_json else "\t".join(f"{score:.2f}" for score in scores)]
        )
    yield Output([], [f"{metric.name}: {metric.line_signature()}" for metric in metrics])


@dataclass(frozen=True)
class LineType:
    """How `nmtkit score` handles lines of one type.

    Attributes:
        input_warnings: yields warnings about texts for which `Texts.check` has passed; DataError
            for a line that is not of this type.
        line_report: as the function `line_report`.
        has_words: a line is a text; the page compares its words.
    """

    input_warnings: Callable[[Texts, MetricsConfig], Iterator[str]]
    line_report: Callable[[MetricsConfig], LineReport]
    has_words: bool


LINE_TYPES: dict[ComparedType, LineType] = {
    "text": LineType(input_warnings, line_report, has_words=True),
    "trees": LineType(lambda texts, _: parse_warnings(texts), evalb_report, has_words=False),
    "alignments": LineType(
        lambda texts, config: link_warnings(texts, int(config.gold_base)),
        line_report,
        has_words=False,
    ),
    "markup": LineType(markup_warnings, line_report, has_words=False),
}
"""How to handle each type of lines that metrics compare."""


def line_type(config: MetricsConfig) -> LineType:
    """Return the type of lines that the metrics compare; all of them compare the same type.

    Programs compare text.
    """
    names = metric_names(config.metric)
    return LINE_TYPES[METRICS[names[0]].compares if names else "text"]


NUM_NGRAMS = 20
"""N-grams per order and ordered pair of systems."""


@dataclass(frozen=True)
class Comparison:
    """Systems compared on one reference.

    Attributes:
        texts: the systems and references; breakdowns use the first reference.
        evaluation: the scores, with all breakdowns.
        counted_text: name of the text whose words are counted for their frequency.
        line_metric: the first metric.
        line_scores: per system, the score of each line by the first metric.
        ngrams: the n-grams that distinguish systems.
    """

    texts: Texts
    evaluation: Evaluation
    counted_text: str
    line_metric: Metric
    line_scores: Sequence[Sequence[float]]
    ngrams: NgramCounts


def compare(
    texts: Texts,
    metrics: Sequence[Metric],
    significance: SignificanceConfig,
    breakdown: BreakdownConfig,
    reporter: WorkReporter = SILENT,
) -> Comparison:
    """Score systems, and compare them by length, by frequency, by n-grams and line by line.

    Args:
        texts, metrics, significance, breakdown, reporter: see `evaluate`.

    Raises:
        ConfigError, DataError: see `evaluate`.
    """
    breakdown = replace(breakdown, by_length=True)
    evaluation = evaluate(texts, metrics, significance, breakdown, reporter)
    reference = texts.references[0]
    if not breakdown.by_frequency:
        evaluation = replace(evaluation, frequencies=_by_frequency(texts, reference.lines))
    line_scores = [
        [score for (score,) in score_lines(replace(texts, systems=[one]), metrics[:1], reporter)]
        for one in texts.systems
    ]
    systems = [one.lines for one in texts.systems]
    with reporter.track(
        reference.lines, "n-grams counted:", "lines", len(reference.lines)
    ) as lines:
        ngrams = telling_ngrams(systems, lines, NUM_NGRAMS)
    return Comparison(
        texts,
        evaluation,
        breakdown.by_frequency or reference.name,
        metrics[0],
        line_scores,
        ngrams,
    )
