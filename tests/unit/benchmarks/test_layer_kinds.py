"""Table 1's path lengths and sequential operations, exactly, for the layers that are measured."""

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
def test_as_many_layers_join_the_ends_as_the_neighbourhoods_add_up_to(name: str) -> None:
    assert layers_to_cross(BY_NAME[name], LENGTH) == CROSSED[name]


@pytest.mark.parametrize("name", [name for name in BY_NAME if "dilated" not in name])
def test_contiguous_kernels_add_up_to_the_length(name: str) -> None:
    length = 10
    is_convolution = f"k = {KERNEL}" in name
    expected = math.ceil((length - 1) / (KERNEL - 1)) if is_convolution else 1
    assert layers_to_cross(BY_NAME[name], length) == expected


@pytest.mark.parametrize("name", BY_NAME)
def test_recurrent_layers_alone_wait_for_each_position(name: str) -> None:
    growth = chain_length(BY_NAME[name], 140) - chain_length(BY_NAME[name], 132)
    is_recurrent = "recurrent" in name
    assert (growth >= 8) == is_recurrent
    assert is_recurrent or growth == 0
