"""Everything that the page of `nmtkit score --html` shows: systems compared on one reference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmtkit.config.metrics import BreakdownConfig, SignificanceConfig
from nmtkit.evaluation.breakdown import FrequencyClass, LengthClass, by_frequency, count_words
from nmtkit.evaluation.evaluate import Evaluation, evaluate, score_lines
from nmtkit.evaluation.metric import Metric, Score
from nmtkit.evaluation.ngrams import NgramMatches, telling_ngrams
from nmtkit.evaluation.texts import Texts
from nmtkit.progress.counting import SILENT, WorkReporter

NUM_NGRAMS = 20
"""N-grams per order and ordered pair of systems."""


@dataclass(frozen=True)
class Comparison:
    """Systems compared on one reference.

    Attributes:
        texts: the systems and references; breakdowns use the first reference.
        evaluation: the scores, with the requested breakdowns only.
        lengths, length_scores: as in `Evaluation`, also if not requested.
        counted_text: name of the text whose words are counted for their frequency.
        frequencies: as in `Evaluation`, also if not requested.
        line_metric: the first metric.
        line_signature: signature of `line_scores`.
        line_scores: per system, the score of each line by the first metric.
        ngrams: the n-grams that distinguish systems.
    """

    texts: Texts
    evaluation: Evaluation
    lengths: Sequence[LengthClass]
    length_scores: Sequence[Sequence[Sequence[Score]]]
    counted_text: str
    frequencies: Sequence[Sequence[FrequencyClass]]
    line_metric: Metric
    line_signature: str
    line_scores: Sequence[Sequence[float]]
    ngrams: Sequence[NgramMatches]


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
    evaluation = evaluate(
        texts, metrics, significance, replace(breakdown, by_length=True), reporter
    )
    lengths, length_scores = evaluation.lengths, evaluation.length_scores
    if not breakdown.by_length:
        evaluation = replace(evaluation, lengths=[], length_scores=[[] for _ in metrics])
    reference = texts.references[0]
    frequencies = evaluation.frequencies
    if not frequencies:
        counts = count_words(reference.lines)
        frequencies = [by_frequency(one.lines, reference.lines, counts) for one in texts.systems]
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
        lengths,
        length_scores,
        breakdown.by_frequency or reference.name,
        frequencies,
        metrics[0],
        metrics[0].line_signature(),
        line_scores,
        ngrams,
    )
