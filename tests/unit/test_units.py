import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.units import counted, duration, perplexity, prefixed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (59.6, "1m00s"), (3599.6, "1h00m"), (360_000, "100h00m")],
)
def test_a_time_span_is_written_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats())
def test_any_time_span_can_be_written(seconds: float) -> None:
    assert duration(abs(seconds))


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0.5, "0.5 "), (999.4, "999 "), (999.5, "1 k"), (1234, "1.23 k"), (999.6e6, "1 G")],
)
def test_a_number_with_a_prefix_has_three_digits(number: float, expected: str) -> None:
    assert prefixed(number) == expected


@pytest.mark.parametrize(
    ("number", "units", "expected"),
    [
        (1, "lines", "1 line"),
        (0, "lines", "0 lines"),
        (25_000, "tokens", "25,000 tokens"),
        (0.0, "minutes", "0 minutes"),
        (1e-9, "", "1e-09"),
        (0.98, "", "0.98"),
    ],
)
def test_a_number_is_shown_with_its_unit(number: float, units: str, expected: str) -> None:
    assert counted(number, units) == expected


def test_perplexity_is_how_many_equal_choices_there_would_be() -> None:
    assert perplexity(math.log(8)) == pytest.approx(8.0)
    assert perplexity(1000.0) == math.inf
