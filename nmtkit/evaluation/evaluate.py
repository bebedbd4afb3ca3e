"""The flow of `nmtkit score`: systems and references -> scores and breakdowns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.config.metrics import BreakdownConfig, SignificanceConfig
from nmtkit.errors import ConfigError
from nmtkit.evaluation.breakdown import (
    FrequencyClass,
    LengthClass,
    by_frequency,
    by_length,
    count_words,
)
from nmtkit.evaluation.metrics import Metric, Score
from nmtkit.evaluation.significance import score_systems
from nmtkit.evaluation.texts import Texts
from nmtkit.parsing.evalb.comparison import Comparison, check_one_reference, compare_lines
from nmtkit.parsing.evalb.parameters import Parameters
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
    _check_one_system(texts)
    prepared = [texts.map(metric.prepare) for metric in metrics]
    for index in range(len(texts.systems[0].lines)):
        yield [
            metric.score_line(
                own.systems[0].lines[index], [one.lines[index] for one in own.references]
            )
            for metric, own in zip(metrics, prepared, strict=True)
        ]


def compare_trees(texts: Texts, parameters: Parameters) -> Iterator[Comparison]:
    """Return EVALB's comparison of each line of a system with the gold tree.

    Args:
        texts: checked.
        parameters: what counts.

    Raises:
        ConfigError: immediately; there are several systems, or several references.
        DataError: as the lines are compared; see `compare_lines`.
    """
    _check_one_system(texts)
    check_one_reference(len(texts.references))
    system, gold = texts.systems[0], texts.references[0]

    def comparisons() -> Iterator[Comparison]:
        with system.blamed():
            yield from compare_lines(gold.lines, system.lines, parameters)

    return comparisons()


def _check_one_system(texts: Texts) -> None:
    if len(texts.systems) > 1:
        raise ConfigError(
            "sentence scores are of one system, and there are several; give one file [--sentence]"
        )
