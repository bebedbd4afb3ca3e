"""Weights of features that a metric prefers on a dev set, by a plain search.

The score of a text follows from the summed statistics of its lines, so a candidate is scored once.
A search tries to move one weight at a time, by smaller and smaller steps. Of many searches, which
begin with each feature alone, with all of them and with random weights, the best result counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from nmtkit.progress.counting import WorkReporter

Floats = NDArray[np.float64]

RANDOM_STARTS = 20
STEPS = tuple(2.0**-power for power in range(-1, 7))
"""The first one crosses zero, so that a weight can change its sign."""


@dataclass(frozen=True, eq=False)
class DevSet:
    """The candidates of a dev set: those of a line are consecutive.

    Attributes:
        values: (C, F), the features of each candidate.
        statistics: (C, M), its statistics for the metric.
        sizes: the number of candidates of each line, at least 1.
        objective: returns the score of summed statistics; higher is better.
    """

    values: Floats
    statistics: Floats
    sizes: NDArray[np.int64]
    objective: Callable[[list[float]], float]

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The first candidate of each line."""
        return self.sizes.cumsum() - self.sizes

    def score(self, weights: Floats) -> float:
        """Return the score of the candidates that weights choose, the first of equal ones."""
        sums = weighted_sums(self.values, weights)
        best = np.repeat(np.maximum.reduceat(sums, self.firsts), self.sizes)
        ties = np.flatnonzero(sums == best)
        chosen = ties[np.searchsorted(ties, self.firsts)]
        return self.objective(self.statistics[chosen].sum(0).tolist())


def weighted_sums(values: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of the features of each candidate: (C, F), (F,) -> (C,).

    Feature by feature, so that the rounding does not depend on the number of candidates.
    """
    total = np.zeros(len(values))
    for column, weight in zip(values.T, weights, strict=True):
        total = total + weight * column
    return total


def tune(dev_set: DevSet, seed: int, reporter: WorkReporter) -> Floats:
    """Return the best weights that are found; the sum of their absolute values is 1.

    They are never worse than a single feature with weight 1.

    Args:
        dev_set: the candidates.
        seed: of the random numbers.
        reporter: receives the progress.
    """
    random, num_features = Random(seed), dev_set.values.shape[1]
    normals = (random.gauss(0, 1) for _ in range(RANDOM_STARTS * num_features))
    randoms = np.fromiter(normals, np.float64).reshape(RANDOM_STARTS, num_features)
    starts = [*np.eye(num_features), np.ones(num_features), *randoms]
    # Units in which weights have similar effects.
    firsts = np.repeat(dev_set.values[dev_set.firsts], dev_set.sizes, axis=0)
    effects = np.abs(dev_set.values - firsts).mean(0)
    units = 1 / np.where(effects > 0, effects, 1)
    with reporter.track(starts, "tuned from", "starts", len(starts)) as tracked:
        found = [_search(dev_set, units, start) for start in tracked]
    return max(found, key=dev_set.score)


def _search(dev_set: DevSet, units: Floats, point: Floats) -> Floats:
    """Improve one weight after another until no step does; return the weights.

    Args:
        dev_set: the candidates.
        units: of the weights (F,).
        point: the weights to begin with, in these units.
    """
    weights = _normalized(point * units)
    score = dev_set.score(weights)
    directions = [*np.eye(len(point)), *-np.eye(len(point))]
    for step in STEPS:
        has_improved = True
        while has_improved:
            has_improved = False
            for direction in directions:
                moved = point + step * direction
                moved_weights = _normalized(moved * units)
                moved_score = dev_set.score(moved_weights)
                if moved_score > score and moved.any():
                    point, weights, score, has_improved = moved, moved_weights, moved_score, True
    return weights


def _normalized(weights: Floats) -> Floats:
    return weights / (np.abs(weights).sum() or 1)
