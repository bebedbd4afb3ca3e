import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.progress.counting import SILENT, WorkReporter
from nmtkit.rerank.tuning import (
    DevSet,
    Objective,
    Sums,
    line_search,
    single_features,
    tune,
    upper_envelope,
    weighted_sums,
)

LINES = st.lists(
    st.tuples(st.integers(-5, 5).map(float), st.integers(-5, 5).map(float)), min_size=1, max_size=8
)


def f_score(sums: Sums) -> float:
    """Return a score that is not the mean of those of the lines, as BLEU."""
    matches, ours, theirs = sums
    return 100 * 2 * matches / max(1, ours + theirs)


def made_up(seed: int, num_features: int, sizes: Sequence[int]) -> DevSet:
    """Return a dev set whose first features say something about the matches."""
    random = np.random.default_rng(seed)
    bounds = [0, *np.cumsum(sizes).tolist()]
    ours = random.integers(5, 12, bounds[-1])
    matches = random.integers(0, ours + 1)
    theirs = np.repeat(random.integers(5, 12, len(sizes)), sizes)
    values = random.normal(size=(bounds[-1], num_features))
    values[:, 0] = matches + 4 * values[:, 0]
    values[:, -1] = 50 * (ours - matches) + 200 * values[:, -1]
    return DevSet(values, np.stack([matches, ours, theirs], 1), bounds)


def by_hand(dev_set: DevSet, weights: Sequence[float], objective: Objective) -> float:
    """Return the score of the first best candidates, in plain Python."""
    sums = [0, 0, 0]
    for first, end in pairwise(dev_set.bounds):
        scores = [
            sum(weight * value for weight, value in zip(weights, row, strict=True))
            for row in dev_set.values[first:end].tolist()
        ]
        chosen = dev_set.statistics[first + scores.index(max(scores))].tolist()
        sums = [one + other for one, other in zip(sums, chosen, strict=True)]
    return objective(sums)


@given(LINES)
def test_the_envelope_is_the_highest_line_everywhere(lines: list[tuple[float, float]]) -> None:
    intercepts, slopes = zip(*lines, strict=True)
    starts, highest = upper_envelope(intercepts, slopes)
    assert len(highest) == len(starts) + 1
    assert starts == sorted(set(starts))
    inner = [(low + high) / 2 for low, high in pairwise(starts)]
    points = [starts[0] - 1, *inner, starts[-1] + 1] if starts else [0.0]
    for point, index in zip(points, highest, strict=True):
        heights = [intercept + point * slope for intercept, slope in lines]
        assert heights[index] == pytest.approx(max(heights), abs=1e-12)
        assert lines.index(lines[index]) == index, "of equal lines, the first"


@pytest.mark.parametrize("seed", range(8))
def test_a_line_search_finds_the_best_point_of_a_fine_grid(seed: int) -> None:
    dev_set = made_up(seed, 3, [4, 1, 6, 3, 5])
    weights, feature = np.array([0.5, -0.3, 0.2]), seed % 3
    found = line_search(dev_set, f_score, weights, feature)

    def score(weight: float) -> float:
        moved = weights.tolist()
        moved[feature] = weight
        return by_hand(dev_set, moved, f_score)

    grid = np.concatenate([np.linspace(-3, 3, 3001), np.tan(np.linspace(-1.57, 1.57, 2001))])
    assert score(found) == max(map(score, grid.tolist()))


def test_of_equal_intervals_the_one_next_to_the_present_weight_is_chosen() -> None:
    # x + w y: the second candidate is chosen above w = 1; the third, which is as good, above 3.
    values = np.array([[0.0, 0.0], [-1.0, 1.0], [-4.0, 2.0]])
    dev_set = DevSet(values, np.array([[0, 5, 5], [5, 5, 5], [5, 5, 5]]), [0, 3])
    assert line_search(dev_set, f_score, np.array([1.0, 0.0]), 1) == 2.0
    assert line_search(dev_set, f_score, np.array([1.0, 9.0]), 1) > 3.0


def test_breakpoints_that_differ_by_rounding_are_one() -> None:
    # Only between the two breakpoints, both lines would have their better candidate.
    near = 0.1 + 0.2
    assert near > 0.3
    values = np.array([[0.0, 0.0], [-0.3, 1.0], [0.0, 0.0], [-near, 1.0]])
    statistics = np.array([[0, 5, 5], [5, 5, 5], [5, 5, 5], [0, 5, 5]])
    dev_set = DevSet(values, statistics, [0, 2, 4])
    assert line_search(dev_set, f_score, np.array([1.0, 0.0]), 1) == pytest.approx(0, abs=1e-9)
    assert line_search(dev_set, f_score, np.array([1.0, 9.0]), 1) == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_tuning_equals_brute_force_over_a_fine_grid(seed: int) -> None:
    dev_set = made_up(seed, 2, [5, 4, 3, 6])
    angles = np.linspace(0, 2 * math.pi, 5_001)
    grid = np.stack([np.cos(angles), np.sin(angles)], 1)
    best = max(f_score(dev_set.sums_of(weights)) for weights in grid)
    tuned = tune(dev_set, f_score, restarts=10, seed=1, reporter=SILENT)
    assert tuned.score == best
    assert by_hand(dev_set, tuned.weights, f_score) == tuned.score


@pytest.mark.parametrize("seed", range(4))
def test_tuned_weights_are_never_worse_than_a_single_feature(seed: int) -> None:
    dev_set = made_up(seed, 4, [3] * 30)
    tuned = tune(dev_set, f_score, restarts=0, seed=1, reporter=SILENT)
    alone = single_features(dev_set, f_score)
    expected = [by_hand(dev_set, row, f_score) for row in np.eye(4).tolist()]
    assert alone == expected
    assert tuned.score >= max(alone)
    assert tuned.score == by_hand(dev_set, tuned.weights, f_score)


def test_weights_are_normalised_and_depend_on_the_seed_only() -> None:
    dev_set = made_up(3, 3, [4] * 20)
    first, again = (tune(dev_set, f_score, 5, 7, SILENT) for _ in range(2))
    assert first == again
    assert sum(map(abs, first.weights)) == pytest.approx(1, abs=1e-12)


def test_more_restarts_are_never_worse() -> None:
    dev_set = made_up(5, 5, [6] * 12)
    scores = [tune(dev_set, f_score, restarts, 1, SILENT).score for restarts in (0, 3, 12)]
    assert scores == sorted(scores)


def test_a_weight_may_be_negative() -> None:
    dev_set = DevSet(np.array([[1.0], [2.0]]), np.array([[5, 5, 5], [0, 5, 5]]), [0, 2])
    assert tune(dev_set, f_score, 0, 1, SILENT).weights == [-1.0]
    assert single_features(dev_set, f_score) == [0]


def test_a_dev_set_without_a_choice_keeps_the_first_feature() -> None:
    dev_set = DevSet(np.ones((2, 2)), np.array([[5, 5, 5], [4, 5, 5]]), [0, 1, 2])
    tuned = tune(dev_set, f_score, 3, 1, SILENT)
    assert (tuned.weights, tuned.score) == ([1.0, 0.0], 90.0)


def test_deviations_are_those_within_lines() -> None:
    values = np.array([[100.0, 3.0, 1.0], [102.0, 3.0, 2.0], [7.0, 5.0, 3.0]])
    dev_set = DevSet(values, np.zeros((3, 3), int), [0, 2, 3])
    expected = [math.sqrt(2 / 3), 1.0, math.sqrt(0.5 / 3)]
    assert dev_set.deviations().tolist() == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.data())
def test_weighted_sums_round_as_a_sum_in_order(row: list[float], data: st.DataObject) -> None:
    size = len(row)
    weights = data.draw(st.lists(st.floats(-10, 10), min_size=size, max_size=size))
    total = 0.0
    for weight, value in zip(weights, row, strict=True):
        total += weight * value
    assert weighted_sums(np.array([row] * 5), np.array(weights)).tolist() == [total] * 5


def test_progress_counts_the_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmtkit.progress.counting.FIRST_REPORT_S", 0.0)
    messages: list[str] = []
    tune(made_up(1, 2, [2, 2]), f_score, 3, 1, WorkReporter(messages.append))
    assert messages[0].startswith("tuned from 1 of 6 starts")
