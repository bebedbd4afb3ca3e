import pytest

from nmtkit.model.kernels.reach import CAUSAL, EVERYTHING, Reach, neighborhood


@pytest.mark.parametrize(
    ("size", "is_causal", "longest", "expected"),
    [
        (0, False, 10**6, EVERYTHING),
        (0, True, 10**6, CAUSAL),
        (1, False, 2, Reach(0, 0)),
        (1, True, 2, Reach(0, 0)),
        (5, False, 4, Reach(2, 2)),
        (4, False, 4, Reach(2, 2)),
        (4, True, 5, Reach(3, 0)),
        (5, False, 3, EVERYTHING),
        (4, True, 4, CAUSAL),
        (1, False, 1, EVERYTHING),
    ],
)
def test_a_neighborhood_is_half_the_window_on_either_side_or_all_of_it_before(
    size: int, is_causal: bool, longest: int, expected: Reach
) -> None:
    reach = neighborhood(size, is_causal, longest)
    assert reach == expected
    assert reach.is_limited is (expected not in (EVERYTHING, CAUSAL))
