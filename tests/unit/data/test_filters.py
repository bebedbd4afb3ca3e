import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import FilterConfig
from nmtkit.data.filters import REASONS, drop_reason

LENGTHS = st.integers(1, 30)
CONFIGS = st.builds(
    FilterConfig, max_length=st.integers(2, 30), max_ratio=st.sampled_from([0.0, 1.0, 1.5, 3.0])
)


@pytest.mark.parametrize(
    ("num_source", "num_target", "expected"),
    [
        (1, 1, "empty"),
        (1, 11, "empty"),  # also too long, and of any ratio
        (5, 1, "empty"),
        (10, 10, None),
        (11, 10, "too long"),
        (3, 11, "too long"),  # also of a bad ratio
        (2, 4, None),  # 1 word and 3: just 3 times as many
        (2, 5, "ratio"),
        (9, 3, "ratio"),
        (7, 3, None),
    ],
)
def test_a_pair_is_dropped_for_its_first_reason(
    num_source: int, num_target: int, expected: str | None
) -> None:
    config = FilterConfig(max_length=10, max_ratio=3.0)
    assert drop_reason(num_source, num_target, config) == expected


@given(LENGTHS, LENGTHS, CONFIGS)
def test_sides_are_treated_alike(one: int, other: int, config: FilterConfig) -> None:
    assert drop_reason(one, other, config) == drop_reason(other, one, config)


@given(LENGTHS, LENGTHS, CONFIGS)
def test_reasons_are_those_that_are_counted(one: int, other: int, config: FilterConfig) -> None:
    assert drop_reason(one, other, config) in (*REASONS, None)


@given(LENGTHS, LENGTHS)
def test_ratio_0_keeps_every_ratio(one: int, other: int) -> None:
    config = FilterConfig(max_length=30, max_ratio=0.0)
    assert drop_reason(one, other, config) == ("empty" if 1 in (one, other) else None)
