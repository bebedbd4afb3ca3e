from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.reporting.svg import Axis, fit_axis

VALUES = st.lists(st.floats(-1e100, 1e100), min_size=1)
PIXELS = (300.0, 20.0)


def axis_of(values: list[float], from_zero: bool) -> Axis:
    return fit_axis(values, PIXELS, from_zero=from_zero)


@given(VALUES, st.booleans())
def test_every_value_has_its_place_between_the_ends(values: list[float], from_zero: bool) -> None:
    axis = axis_of(values, from_zero)
    assert all(20 <= axis.pixel(value) <= 300 for value in values)
    assert (axis.pixel(axis.low), axis.pixel(axis.high)) == PIXELS


@given(VALUES, st.booleans())
def test_larger_values_are_further_along(values: list[float], from_zero: bool) -> None:
    places = [axis_of(values, from_zero).pixel(value) for value in sorted(values)]
    assert places == sorted(places, reverse=True)


@given(VALUES, st.booleans(), st.integers(3, 9))
def test_ticks_are_even_within_the_range_with_distinct_labels(
    values: list[float], from_zero: bool, most: int
) -> None:
    axis = axis_of(values, from_zero)
    ticks = axis.ticks(most, min_step=0)
    margin = (axis.high - axis.low) * 1e-6
    assert all(axis.low - margin <= value <= axis.high + margin for value, _ in ticks)
    assert 1 <= len(ticks) <= most + 1
    assert len({label for _, label in ticks}) == len(ticks)
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(ticks)]
    assert all(abs(step - steps[0]) <= margin for step in steps)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(3, 9))
def test_a_label_reads_as_its_value(first: float, second: float, most: int) -> None:
    axis = axis_of([first, second], from_zero=False)
    for value, label in axis.ticks(most, min_step=0):
        read = float(label.replace(",", ""))
        # What floats leave of a sum of steps.
        assert read == pytest.approx(value, rel=1e-9, abs=(axis.high - axis.low) * 1e-9)


def test_an_axis_may_begin_at_zero_and_does_not_hide_what_is_below() -> None:
    assert axis_of([3.0, 5.0], from_zero=True).low == 0
    assert axis_of([3.0, 5.0], from_zero=False).low > 2
    assert axis_of([-1.0, 5.0], from_zero=True).low < -1


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 20_000.0, ["0", "5,000", "10,000", "15,000", "20,000"]),
        (0.0, 7e-4, ["0", "0.0002", "0.0004", "0.0006"]),
        (0.0, 4e-7, ["0", "1e-7", "2e-7", "3e-7", "4e-7"]),
        (1.9, 3.1, ["2.0", "2.5", "3.0"]),
        (1.2e9, 1.5e9, ["1.2e9", "1.3e9", "1.4e9", "1.5e9"]),
    ],
)
def test_labels_are_round_and_no_longer_than_they_must_be(
    low: float, high: float, labels: list[str]
) -> None:
    axis = Axis(low, high, *PIXELS)
    assert [label for _, label in axis.ticks(4, min_step=0)] == labels


def test_updates_are_not_divided() -> None:
    labels = [label for _, label in Axis(0, 3, *PIXELS).ticks(7, min_step=1)]
    assert labels == ["0", "1", "2", "3"]
