"""Counts from a model's shape are those of the model itself, and of torch's own counter."""

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.config.training import ModelConfig
from nmtkit.data.batch import Batch
from nmtkit.model.cost import Work, count_parameters, training_operations
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.training.objective import Objective

SMALL = ModelConfig(
    encoder_layers=2, decoder_layers=3, model_size=16, feed_forward_size=24, heads=2
)
SHAPES = {
    "plain": SMALL,
    "pre-norm": replace(SMALL, norm="pre"),
    "untied": replace(SMALL, tie_embeddings=False),
    "learned positions": replace(SMALL, positions="learned", max_positions=9),
    "own head sizes": replace(SMALL, key_size=3, value_size=5),
    "output bias": replace(SMALL, output_bias=True),
}


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
def test_parameters_are_those_of_the_model(config: ModelConfig, is_shared: bool) -> None:
    sizes = (12, 12) if is_shared else (11, 13)
    model = Transformer(config, *sizes, is_shared)
    counted = count_parameters(config, *sizes, is_shared)
    assert counted.total == sum(p.numel() for p in model.parameters())
    layers = [*model.encoder, model.encoder_norm]
    assert counted.encoder == sum(p.numel() for layer in layers for p in layer.parameters())


@pytest.mark.parametrize(
    ("preset", "millions"),
    [("base", 63.1), ("big", 214.2)],
)
def test_the_paper_models_have_their_known_sizes(preset: str, millions: float) -> None:
    config = build(TrainRecipe, PRESETS[preset]).model
    counted = count_parameters(config, 37_000, 37_000, is_shared=True)
    assert counted.total / 1e6 == pytest.approx(millions, abs=0.05)


@pytest.mark.parametrize("config", [SMALL, SHAPES["own head sizes"]])
def test_operations_are_those_that_torch_counts(config: ModelConfig) -> None:
    num_sentences, source_length, target_length, size = 3, 5, 7, 19
    cpu = torch.device("cpu")
    target = pack_sequences([[4] * target_length] * num_sentences, cpu)
    batch = Batch(pack_sequences([[3] * source_length] * num_sentences, cpu), target, target.values)
    objective = Objective(Transformer(config, size, size, is_shared=True), 0.1, None)
    # The other kernels of a CPU are unknown to the counter.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        objective(batch).smoothed.backward()
    work = Work(
        source_tokens=num_sentences * source_length,
        target_tokens=num_sentences * target_length,
        source_length=source_length,
        target_length=target_length,
    )
    counted = training_operations(config, size, work)
    # Nor is the product that the loss adds in place to the gradient of the output projection.
    added_in_place = 2 * work.target_tokens * config.model_size * size
    assert counted == pytest.approx(counter.get_total_flops() + added_in_place, rel=1e-6)


def test_a_window_saves_the_products_beyond_it() -> None:
    work = Work(source_tokens=100, target_tokens=80, source_length=50, target_length=40)
    full = training_operations(SHAPES["own head sizes"], 19, work)
    restricted = training_operations(replace(SHAPES["own head sizes"], window=9), 19, work)
    # Of keys and values (2 heads of 3 + 5), 4 positions on either side of each, or the last 9.
    source = SMALL.encoder_layers * 100 * (50 - 9) * 16
    target = SMALL.decoder_layers * 80 * (40 - 9) * 16
    assert full - restricted == 3 * 2 * (source + target)
    assert training_operations(replace(SHAPES["own head sizes"], window=100), 19, work) == full
