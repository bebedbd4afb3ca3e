from dataclasses import replace

import pytest

from nmtkit.config.model import ModelConfig


def test_only_learned_positions_limit_a_sequence() -> None:
    config = ModelConfig(max_positions=77)
    assert replace(config, positions="learned").longest_sequence == 77
    assert config.longest_sequence > 10**9


@pytest.mark.parametrize(
    ("key_size", "value_size", "expected"), [(0, 0, (4, 4)), (2, 0, (2, 4)), (0, 7, (4, 7))]
)
def test_head_sizes_are_the_model_size_over_heads_unless_given(
    key_size: int, value_size: int, expected: tuple[int, int]
) -> None:
    given = ModelConfig(model_size=12, heads=3, key_size=key_size, value_size=value_size)
    assert given.head_sizes == expected
