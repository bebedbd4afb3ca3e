"""Minimum error rate training: the weights of features that a metric prefers on a dev set.

A search sets one weight after another to its best value, with exact line search, until none of
them improves the score. It begins with each feature alone, with all of them, and with random
weights. Source: Och 2003, "Minimum Error Rate Training in Statistical Machine Translation",
section 4.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from nmtkit.progress.counting import WorkReporter

Floats = NDArray[np.float64]
Statistics = NDArray[np.int64] | Floats
Sums = Sequence[int | float]
Objective = Callable[[Sums], float]
"""Returns the score of summed statistics; higher is better."""

_CLOSE = 1e-10
"""Relative difference up to which two breakpoints are taken for one."""


@dataclass(frozen=True, eq=False)
class DevSet:
    """The candidates of a dev set: those of a line are consecutive.

    Attributes:
        values: (C, F) float64, the features of each candidate.
        statistics: (C, M), the statistics of each candidate for the metric; integers, whose sums
            are exact, or float64.
        bounds: the first candidate of each line, and C.
    """

    values: Floats
    statistics: Statistics
    bounds: Sequence[int]

    @property
    def num_features(self) -> int:
        """The number of features."""
        return int(self.values.shape[1])

    def lines(self) -> Iterator[slice]:
        """Yield the candidates of each line."""
        return (slice(*bounds) for bounds in pairwise(self.bounds))

    def sums_of(self, weights: Floats) -> Sums:
        """Return the summed statistics of the candidates that weights choose, the first of ties."""
        scores = weighted_sums(self.values, weights)
        chosen = [one.start + int(scores[one].argmax()) for one in self.lines()]
        sums: list[int | float] = self.statistics[chosen].sum(0).tolist()
        return sums

    def deviations(self) -> Floats:
        """Return the standard deviation of each feature within lines (F,); 1 instead of 0."""
        centered = [self.values[one] - self.values[one].mean(0) for one in self.lines()]
        found: Floats = np.sqrt(np.square(np.concatenate(centered)).mean(0))
        return np.where(found > 0, found, 1.0)


@dataclass(frozen=True)
class Tuned:
    """The result of tuning.

    Attributes:
        weights: per feature; the sum of their absolute values is 1.
        score: the score of the dev set, as `Objective` returns it.
    """

    weights: Sequence[float]
    score: float


def weighted_sums(values: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of the features of each candidate: (C, F), (F,) -> (C,).

    Feature by feature, so that the rounding does not depend on the number of candidates.
    """
    total = np.zeros(len(values))
    for column, weight in zip(values.T, weights, strict=True):
        total = total + weight * column
    return total


def single_features(dev_set: DevSet, objective: Objective) -> list[float]:
    """Return the score of each feature alone, with weight 1."""
    return [objective(dev_set.sums_of(one)) for one in np.eye(dev_set.num_features)]


def tune(
    dev_set: DevSet, objective: Objective, restarts: int, seed: int, reporter: WorkReporter
) -> Tuned:
    """Return the best weights that are found, never worse than a single feature with weight 1.

    Args:
        dev_set: the candidates.
        objective: the metric.
        restarts: number of searches that begin with random weights.
        seed: of the random numbers.
        reporter: receives the progress.
    """
    best = Tuned([], -np.inf)
    starts = [*np.eye(dev_set.num_features), *_random_starts(dev_set, restarts, seed)]
    with reporter.track(starts, "tuned from", "starts", len(starts)) as tracked:
        for start in tracked:
            found = _search(dev_set, objective, start)
            if found.score > best.score:
                best = found
    return best


def _random_starts(dev_set: DevSet, restarts: int, seed: int) -> Iterator[Floats]:
    """Yield all features with equal effect, then random weights; both scaled by deviations."""
    scale, random = 1 / dev_set.deviations(), Random(seed)
    yield scale
    for _ in range(restarts):
        yield scale * np.array([random.gauss(0, 1) for _ in range(dev_set.num_features)])


def _search(dev_set: DevSet, objective: Objective, start: Floats) -> Tuned:
    """Improve one weight after another until none of them improves the score."""
    weights = _normalized(start)
    score = objective(dev_set.sums_of(weights))
    num_failed, feature = 0, 0
    while num_failed < dev_set.num_features:
        moved = weights.copy()
        moved[feature] = line_search(dev_set, objective, weights, feature)
        # Rounding can decide between almost equal candidates: the score itself is compared.
        moved = _normalized(moved)
        moved_score = objective(dev_set.sums_of(moved))
        num_failed += 1
        if moved_score > score:
            weights, score, num_failed = moved, moved_score, 0
        feature = (feature + 1) % dev_set.num_features
    return Tuned(weights.tolist(), score)


def _normalized(weights: Floats) -> Floats:
    total = np.abs(weights).sum()
    return weights / total if total > 0 else weights


def line_search(dev_set: DevSet, objective: Objective, weights: Floats, feature: int) -> float:
    """Return the value of a weight for which the score is highest, the others being fixed.

    The score is constant between two breakpoints, where the best candidate of a line changes. Of
    several best intervals, the one next to the present weight is chosen.

    Args:
        dev_set: the candidates.
        objective: the metric.
        weights: the weights (F,).
        feature: index of the weight to change.
    """
    fixed = weights.copy()
    fixed[feature] = 0
    intercepts, slopes = weighted_sums(dev_set.values, fixed), dev_set.values[:, feature]
    first, breakpoints, befores, afters = [], [], [], []
    for one in dev_set.lines():
        starts, winners = upper_envelope(intercepts[one].tolist(), slopes[one].tolist())
        own = [one.start + winner for winner in winners]
        first.append(own[0])
        breakpoints += starts
        befores += own[:-1]
        afters += own[1:]
    if not breakpoints:
        return float(weights[feature])
    order = np.argsort(breakpoints, kind="stable")
    points = np.array(breakpoints)[order]
    changes = (dev_set.statistics[afters] - dev_set.statistics[befores])[order]
    begin = dev_set.statistics[first].sum(0)
    # Breakpoints that differ by rounding are one: no weight lies safely between them.
    is_last = np.append(np.diff(points) > _CLOSE * np.abs(points[1:]), True)
    after = begin + np.cumsum(changes, 0)[is_last]
    scores = [objective(begin.tolist()), *(objective(row) for row in after.tolist())]
    middles = _middles(points[np.append(True, is_last[:-1])].tolist(), points[is_last].tolist())
    best = max(scores)
    present = float(weights[feature])
    return min(
        (middle for middle, score in zip(middles, scores, strict=True) if score == best),
        key=lambda middle: abs(middle - present),
    )


def upper_envelope(
    intercepts: Sequence[float], slopes: Sequence[float]
) -> tuple[list[float], list[int]]:
    """Return where the highest of some straight lines changes, and which one it is.

    Args:
        intercepts, slopes: of each line: its height at x is intercept + x * slope.

    Returns:
        The breakpoints in ascending order, and the index of the highest line before the first
        one and after each of them. Of equal lines it is the first.
    """

    def crossing(lower: int, steeper: int) -> float:
        return (intercepts[lower] - intercepts[steeper]) / (slopes[steeper] - slopes[lower])

    starts: list[float] = []
    highest: list[int] = []
    for index in sorted(range(len(slopes)), key=lambda one: (slopes[one], -intercepts[one], one)):
        if highest and slopes[index] == slopes[highest[-1]]:
            continue  # parallel to a line that is as high or higher
        while starts and crossing(highest[-1], index) <= starts[-1]:
            highest.pop()
            starts.pop()
        if highest:
            starts.append(crossing(highest[-1], index))
        highest.append(index)
    return starts, highest


def _middles(begins: Sequence[float], ends: Sequence[float]) -> list[float]:
    """Return a number between each two breakpoints, and one on either side of all.

    Args:
        begins, ends: the lowest and the highest value that is taken for each breakpoint.
    """
    low, high = begins[0], ends[-1]
    margin = max(high - low, abs(low), abs(high)) or 1.0
    inner = [end + (begin - end) / 2 for end, begin in zip(ends, begins[1:], strict=False)]
    return [low - margin, *inner, high + margin]
