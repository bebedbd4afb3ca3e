"""The number of parameters is that of the paper."""

from dataclasses import replace

import pytest
import torch

from nmtkit.config.training import ModelConfig
from nmtkit.model.transformer import Transformer


def count_parameters(config: ModelConfig, source_size: int, is_shared: bool) -> int:
    with torch.device("meta"):
        model = Transformer(config, source_size, 37_000, is_shared)
    return sum(parameter.numel() for parameter in model.parameters())


BASE = ModelConfig()


@pytest.mark.parametrize(
    ("config", "millions"),
    [
        (BASE, 63.1),
        (replace(BASE, key_size=16), 56.0),
        (replace(BASE, key_size=32), 58.4),
        (replace(BASE, encoder_layers=2, decoder_layers=2), 33.7),
        (replace(BASE, encoder_layers=4, decoder_layers=4), 48.4),
        (replace(BASE, encoder_layers=8, decoder_layers=8), 77.8),
        (replace(BASE, model_size=256, key_size=32, value_size=32), 26.8),
        (replace(BASE, model_size=1024, key_size=128, value_size=128), 163.9),
        (replace(BASE, feed_forward_size=1024), 50.5),
        (replace(BASE, feed_forward_size=4096), 88.3),
        (replace(BASE, model_size=1024, feed_forward_size=4096, heads=16), 214.2),
    ],
    ids=["base", "B16", "B32", "N2", "N4", "N8", "d256", "d1024", "ff1024", "ff4096", "big"],
)
def test_parameters_are_those_of_table_3_with_37000_shared_entries(
    config: ModelConfig, millions: float
) -> None:
    count = count_parameters(config, 37_000, is_shared=True)
    assert count / 1e6 == pytest.approx(millions, abs=0.05)


def test_each_untied_matrix_adds_its_size() -> None:
    shared = count_parameters(BASE, 37_000, is_shared=True)
    assert count_parameters(BASE, 1000, is_shared=False) == shared + 1000 * 512
    untied = replace(BASE, tie_embeddings=False)
    assert count_parameters(untied, 37_000, is_shared=True) == shared + 2 * 37_000 * 512
    assert count_parameters(untied, 1000, is_shared=False) == shared + (1000 + 37_000) * 512
