"""The dev set that weights are tuned on: features of candidates, and statistics of a metric."""

from collections.abc import Mapping, Sequence

import numpy as np

from nmtkit.errors import DataError
from nmtkit.evaluation.metric import Metric
from nmtkit.evaluation.texts import Text
from nmtkit.progress.counting import WorkReporter
from nmtkit.rerank.candidates import CandidateList
from nmtkit.rerank.features import Feature, feature_values
from nmtkit.rerank.tuning import DevSet, Objective, Statistics
from nmtkit.text.lines import one_line


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
    metric: Metric,
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
        DataError: a feature cannot be computed.
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
    metric: Metric,
    reporter: WorkReporter,
) -> Statistics:
    """Return the statistics (C, M) of all candidates; equal ones of a line are counted once."""
    places: dict[tuple[int, str], int] = {}
    keys = [
        (number, one_line(one.text)) for number, line in enumerate(lines) for one in line.candidates
    ]
    for key in keys:
        places.setdefault(key, len(places))
    prepared = [[metric.prepare(line) for line in one.lines] for one in references]
    with reporter.track(places, f"scored by {metric.name}:", "candidates", len(places)) as tracked:
        found = metric.count(
            (metric.prepare(text) for _, text in tracked),
            [[one[number] for number, _ in places] for one in prepared],
        )
    statistics = np.array(found)
    if not np.issubdtype(statistics.dtype, np.integer):
        statistics = statistics.astype(np.float64)
    chosen: Statistics = statistics[[places[key] for key in keys]]
    return chosen


def objective_of(metric: Metric) -> Objective:
    """Return the function from summed statistics to a score; higher is better."""
    return lambda sums: as_score(metric, metric.score_sums(sums))


def as_score(metric: Metric, value: float) -> float:
    """Turn a score of a metric into one of which higher is better, or back."""
    return value if metric.is_higher_better else -value
