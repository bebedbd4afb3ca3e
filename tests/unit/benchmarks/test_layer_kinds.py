"""Path lengths and sequential operations of the measured layers equal those of table 1."""

import math

import pytest

from benchmarks.layer_kinds import KERNEL, KINDS, WINDOW, chain_length, layers_to_cross

LENGTH = WINDOW + 1
BY_NAME = {kind.name: kind for kind in KINDS}
CROSSED = {
    "self-attention": 1,
    f"restricted, r = {WINDOW}": math.ceil((LENGTH - 1) / (WINDOW // 2)),
    "recurrent, GRU": 1,
    f"dilated, k = {KERNEL}": math.ceil(math.log(LENGTH, KERNEL)),
}


@pytest.mark.parametrize("name", CROSSED)
def test_layers_from_end_to_end_are_the_length_over_the_neighbourhood(name: str) -> None:
    assert layers_to_cross(BY_NAME[name], LENGTH) == CROSSED[name]


@pytest.mark.parametrize("name", BY_NAME)
def test_only_recurrent_layers_have_a_chain_that_grows_with_n(name: str) -> None:
    growth = chain_length(BY_NAME[name], 140) - chain_length(BY_NAME[name], 132)
    is_recurrent = "recurrent" in name
    assert (growth >= 8) == is_recurrent
    assert is_recurrent or growth == 0
