"""Few out of many: long curves and tables, of which what matters stays."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Points = Sequence[tuple[float, float]]

_KEPT_OF_A_BUCKET = 5


def buckets(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Split a sequence into `count` parts whose lengths differ by at most one."""
    ends = [len(items) * number // count for number in range(count + 1)]
    return [items[start:end] for start, end in pairwise(ends)]


def thinned(points: Points, max_points: int) -> Points:
    """Return a curve of at most `max_points` points that looks like another.

    Of each of its parts stay the first and the last point, the lowest and the highest, and one
    that is not finite, if there is any.
    """
    if len(points) <= max_points:
        return points
    parts = buckets(points, max_points // _KEPT_OF_A_BUCKET)
    return [part[index] for part in parts for index in _telling(part)]


def _telling(points: Points) -> list[int]:
    """Return the indices of the points that stay, in their order."""
    heights = [height for _, height in points]
    finite = [height for height in heights if math.isfinite(height)]
    telling = {0, len(points) - 1}
    if finite:
        telling |= {heights.index(min(finite)), heights.index(max(finite))}
    if len(finite) < len(heights):
        telling.add(next(i for i, height in enumerate(heights) if not math.isfinite(height)))
    return sorted(telling)
