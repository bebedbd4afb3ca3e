import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.progress.counting import SILENT
from nmtkit.rerank.tuning import DevSet, tune, weighted_sums


def f_score(sums: Sequence[float]) -> float:
    """Return a score that is not the mean of those of the lines, as BLEU."""
    matches, ours, theirs = sums
    return 100 * 2 * matches / max(1, ours + theirs)


def dev_set_of(values: object, statistics: object, sizes: Sequence[int]) -> DevSet:
    rows, counts = np.array(values, np.float64), np.array(statistics, np.float64)
    return DevSet(rows, counts, np.array(sizes), f_score)


def made_up(seed: int, num_features: int, sizes: Sequence[int]) -> DevSet:
    """Return a dev set whose first and last features say something about the matches."""
    random = np.random.default_rng(seed)
    ours = random.integers(5, 12, sum(sizes))
    matches = random.integers(0, ours + 1)
    theirs = np.repeat(random.integers(5, 12, len(sizes)), sizes)
    values = random.normal(size=(sum(sizes), num_features))
    values[:, 0] = matches + 4 * values[:, 0]
    values[:, -1] = 50 * (ours - matches) + 200 * values[:, -1]
    return dev_set_of(values, np.stack([matches, ours, theirs], 1), sizes)


def by_hand(dev_set: DevSet, weights: Sequence[float]) -> float:
    """Return the score of the first best candidates, in plain Python."""
    sums, first = [0.0, 0.0, 0.0], 0
    for size in dev_set.sizes.tolist():
        scores = [
            sum(weight * value for weight, value in zip(weights, row, strict=True))
            for row in dev_set.values[first : first + size].tolist()
        ]
        chosen = dev_set.statistics[first + scores.index(max(scores))].tolist()
        sums = [one + other for one, other in zip(sums, chosen, strict=True)]
        first += size
    return f_score(sums)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=5))
def test_of_equal_candidates_the_first_one_is_scored(values: list[list[int]]) -> None:
    column = [[value] for line in values for value in line]
    statistics = [[place, 1, 1] for place in range(len(column))]
    dev_set = dev_set_of(column, statistics, [*map(len, values)])
    assert dev_set.score(np.ones(1)) == by_hand(dev_set, [1])


@pytest.mark.parametrize("seed", range(6))
def test_tuning_is_about_as_good_as_a_fine_grid(seed: int) -> None:
    dev_set = made_up(seed, 2, [5, 4, 3, 6] * 4)
    angles = np.linspace(0, 2 * math.pi, 2_001)
    units = dev_set.values.std(0)
    best = max(dev_set.score(np.array([math.cos(one), math.sin(one)]) / units) for one in angles)
    weights = tune(dev_set, 1, SILENT)
    # A search by steps may miss an interval; this one is worth less than half a point.
    assert dev_set.score(weights) >= best - 0.5
    assert dev_set.score(weights) == by_hand(dev_set, weights.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_tuned_weights_are_never_worse_than_those_of_a_start(seed: int) -> None:
    dev_set = made_up(seed, 4, [3] * 30)
    tuned = dev_set.score(tune(dev_set, seed, SILENT))
    assert tuned > max(by_hand(dev_set, row) for row in np.eye(4).tolist())


def test_weights_are_normalised_and_depend_on_the_seed_only() -> None:
    dev_set = made_up(3, 3, [4] * 20)
    first, again = (tune(dev_set, 7, SILENT).tolist() for _ in range(2))
    assert first == again
    assert sum(map(abs, first)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_a_feature_does_not_matter(scale: float) -> None:
    dev_set = made_up(2, 3, [4] * 20)
    scaled = DevSet(dev_set.values * [1, scale, 1], dev_set.statistics, dev_set.sizes, f_score)
    both = [one.score(tune(one, 1, SILENT)) for one in (dev_set, scaled)]
    assert both[0] == pytest.approx(both[1], abs=0.5)


def test_a_weight_may_be_negative() -> None:
    dev_set = dev_set_of([[1], [2]], [[5, 5, 5], [0, 5, 5]], [2])
    assert tune(dev_set, 1, SILENT).tolist() == [-1.0]


def test_a_dev_set_without_a_choice_keeps_the_first_feature() -> None:
    dev_set = dev_set_of(np.ones((2, 2)), [[5, 5, 5], [4, 5, 5]], [1, 1])
    assert tune(dev_set, 1, SILENT).tolist() == [1.0, 0.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.data())
def test_weighted_sums_round_as_a_sum_in_order(row: list[float], data: st.DataObject) -> None:
    size = len(row)
    weights = data.draw(st.lists(st.floats(-10, 10), min_size=size, max_size=size))
    total = 0.0
    for weight, value in zip(weights, row, strict=True):
        total += weight * value
    assert weighted_sums(np.array([row] * 5), np.array(weights)).tolist() == [total] * 5
