import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.units import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (59.6, "1m00s"), (3599.6, "1h00m"), (360_000, "100h00m")],
)
def test_a_time_span_is_written_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats())
def test_any_time_span_can_be_written(seconds: float) -> None:
    assert duration(abs(seconds))
