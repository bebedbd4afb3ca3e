"""The dev set that weights are tuned on: features of candidates, and statistics of a metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmtkit.config.metric_commands import metric_commands
from nmtkit.config.metrics import MetricsConfig
from nmtkit.errors import DataError
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.metric_command import Segment, run_metric_command
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.evaluation.texts import Text
from nmtkit.progress.counting import WorkReporter
from nmtkit.rerank.candidates import CandidateList
from nmtkit.rerank.features import Feature, feature_values
from nmtkit.rerank.tuning import DevSet, Objective, Statistics, Sums
from nmtkit.text.lines import one_line


@dataclass(frozen=True)
class TuningMetric:
    """A metric whose score of a text follows from sums over its lines.

    Attributes:
        name: its label.
        is_higher_better: false for an error rate.
        count: returns the statistics of each segment; reports its progress.
        score_sums: returns the score of summed statistics.
        decimals: number of decimals in text; many programs write numbers from 0 to 1.
    """

    name: str
    is_higher_better: bool
    count: Callable[[Sequence[Segment], WorkReporter], Sequence[Sequence[int | float]]]
    score_sums: Callable[[Sums], float]
    decimals: int

    def shown(self, value: float) -> str:
        """Return a value of the objective as text, such as "BLEU = 31.20"."""
        return f"{self.name} = {self.as_score(value):.{self.decimals}f}"

    def as_score(self, value: float) -> float:
        """Turn a score into one of which higher is better, or back."""
        return value if self.is_higher_better else -value

    @property
    def objective(self) -> Objective:
        """The function from summed statistics to a score; higher is better."""
        return lambda sums: self.as_score(self.score_sums(sums))


def make_metric(config: MetricsConfig) -> TuningMetric:
    """Return the metric that `config.metric` names: a built-in one, or a program.

    Raises:
        ConfigError: see `make_metrics`.
    """
    commands = metric_commands(config.metric_command)
    if config.metric in commands:
        return _of_program(config.metric, commands[config.metric])
    metric, *_ = make_metrics(config)
    return _of_text(metric)


def _of_text(metric: Metric) -> TuningMetric:
    """Return a built-in metric; its statistics are those of sacreBLEU."""

    def count(
        segments: Sequence[Segment], reporter: WorkReporter
    ) -> Sequence[Sequence[int | float]]:
        references = [
            [metric.prepare(text) for text in texts]
            for texts in zip(*(one.references for one in segments), strict=True)
        ]
        verb = f"scored by {metric.name}:"
        with reporter.track(segments, verb, "candidates", len(segments)) as tracked:
            translations = (metric.prepare(one.translation) for one in tracked)
            return metric.count(translations, references)

    return TuningMetric(metric.name, metric.is_higher_better, count, metric.score_sums, 2)


def _of_program(name: str, command: str) -> TuningMetric:
    """Return the mean of a program's scores."""

    def count(
        segments: Sequence[Segment], reporter: WorkReporter
    ) -> Sequence[Sequence[int | float]]:
        total = len(segments)
        with reporter.counting(f"scored by {name}:", "candidates", total) as counting:
            scores = run_metric_command(name, command, segments, lambda: counting.add(1))
        return [(score, 1) for score in scores]

    return TuningMetric(name, True, count, lambda sums: sums[0] / sums[1], 4)


def check_references(name: str, num_lines: int, references: Sequence[Text]) -> None:
    """Raise DataError if there are no lines, or a reference has another number of lines.

    Args:
        name: name of the candidates.
        num_lines: number of lines with candidates.
        references: one or more.
    """
    for reference in references:
        if len(reference.lines) != num_lines:
            raise DataError(
                f"{name} has {num_lines} lines and {reference.name} has {len(reference.lines)}; "
                "give one reference per line, in the same order"
            )
    if not num_lines:
        raise DataError(f"{name} has no lines to tune on; give a dev set")


def make_dev_set(
    lines: Sequence[CandidateList],
    references: Sequence[Text],
    features: Mapping[str, Feature],
    metric: TuningMetric,
    chunk_lines: int,
    reporter: WorkReporter,
) -> DevSet:
    """Compute the features and the statistics of all candidates.

    Args:
        lines: the lines; `check_references` has passed.
        references: one or more references of each line.
        features: by name.
        metric: the metric of the tuning.
        chunk_lines: lines whose features are computed together.
        reporter: receives the progress.

    Raises:
        ConfigError, DataError, ProgramError: a feature or the metric cannot be computed.
    """
    values: list[list[float]] = []
    bounds = [0]
    with reporter.counting("scored candidates of", "lines", len(lines)) as counting:
        for first in range(0, len(lines), chunk_lines):
            chunk = lines[first : first + chunk_lines]
            for of_line in feature_values(chunk, features):
                values += [[*own.values()] for own in of_line]
                bounds.append(len(values))
            counting.add(len(chunk))
    statistics = _statistics(lines, references, metric, reporter)
    return DevSet(np.array(values, dtype=np.float64), statistics, bounds)


def _statistics(
    lines: Sequence[CandidateList],
    references: Sequence[Text],
    metric: TuningMetric,
    reporter: WorkReporter,
) -> Statistics:
    """Return the statistics (C, M) of all candidates; equal ones of a line are counted once."""
    places: dict[tuple[int, str], int] = {}
    keys = [
        (number, one_line(one.text)) for number, line in enumerate(lines) for one in line.candidates
    ]
    for key in keys:
        places.setdefault(key, len(places))
    segments = [
        Segment(lines[number].source, text, tuple(one.lines[number] for one in references))
        for number, text in places
    ]
    found = np.array(metric.count(segments, reporter))
    if not np.issubdtype(found.dtype, np.integer):
        found = found.astype(np.float64)
    chosen: Statistics = found[[places[key] for key in keys]]
    return chosen
