from dataclasses import replace

from nmtkit.config.training import ModelConfig


def test_learned_positions_alone_limit_a_sequence() -> None:
    config = ModelConfig(max_positions=77)
    assert replace(config, positions="learned").longest_sequence == 77
    assert config.longest_sequence > 10**9
