import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.reporting.thinning import buckets, thinned

HEIGHTS = st.lists(st.floats(), max_size=300)
LIMITS = st.integers(5, 100)


def points_of(heights: list[float]) -> list[tuple[float, float]]:
    return list(enumerate(heights))


@given(st.lists(st.integers()), st.integers(1, 20))
def test_buckets_hold_all_items_in_order_and_are_of_one_size(items: list[int], count: int) -> None:
    parts = buckets(items, count)
    assert [item for part in parts for item in part] == items
    sizes = [len(part) for part in parts]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1


@given(HEIGHTS, LIMITS)
def test_a_thinned_curve_is_some_of_the_points_in_order_and_not_too_many(
    heights: list[float], limit: int
) -> None:
    kept = [update for update, _ in thinned(points_of(heights), limit)]
    assert len(kept) <= limit
    assert all(earlier < later for earlier, later in pairwise(kept))
    assert set(kept) <= set(range(len(heights)))


@given(HEIGHTS, LIMITS)
def test_a_thinned_curve_keeps_its_ends_and_its_extremes(heights: list[float], limit: int) -> None:
    points = points_of(heights)
    kept = thinned(points, limit)
    assert list(kept[:1]) == points[:1]
    assert list(kept[-1:]) == points[-1:]
    finite = [height for height in heights if math.isfinite(height)]
    if finite:
        heights_kept = {height for _, height in kept}
        assert {min(finite), max(finite)} <= heights_kept


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=300), st.data(), LIMITS)
def test_a_thinned_curve_keeps_its_gaps(
    heights: list[float], data: st.DataObject, limit: int
) -> None:
    heights[data.draw(st.integers(0, len(heights) - 1))] = math.nan
    assert any(math.isnan(height) for _, height in thinned(points_of(heights), limit))


@given(HEIGHTS)
def test_a_short_curve_stays_as_it_is(heights: list[float]) -> None:
    points = points_of(heights)
    assert thinned(points, len(points)) is points
