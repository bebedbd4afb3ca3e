"""Counts from a model's shape equal those of the model itself, and of torch's counter."""

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.live_memory import LiveMemory
from nmtkit.config.model import ModelConfig
from nmtkit.config.presets import PRESET_OF_ROW, PRESETS
from nmtkit.config.presets import SMALL as SMALL_PRESET
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import Batch
from nmtkit.model.cost import (
    BFLOAT16_BYTES,
    FLOAT32_BYTES,
    TrainingMemory,
    Workload,
    count_parameters,
    operations,
    training_memory,
    training_operations,
)
from nmtkit.model.kernels import padded
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.reporting.paper import TABLE_3
from nmtkit.training import objective as objective_module
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import make_optimizer

CPU = torch.device("cpu")
SMALL = ModelConfig(
    encoder_layers=2, decoder_layers=3, model_size=16, feed_forward_size=24, heads=2
)
SHAPES = {
    "plain": SMALL,
    "pre-norm": replace(SMALL, norm="pre"),
    "untied": replace(SMALL, tie_embeddings=False),
    "learned positions": replace(SMALL, positions="learned", max_positions=9),
    "rotary positions": replace(SMALL, positions="rotary"),
    "swiglu": replace(SMALL, activation="swiglu"),
    "own head sizes": replace(SMALL, key_size=3, value_size=5),
    "output bias": replace(SMALL, output_bias=True),
    "QK-norm": replace(SMALL, qk_norm=True),
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


def millions(preset: str, vocab_size: int) -> float:
    config = build(TrainRecipe, PRESETS[preset]).model
    return count_parameters(config, vocab_size, vocab_size, is_shared=True).total / 1e6


@pytest.mark.parametrize(
    ("preset", "size"),
    [
        ("base", 63.1),
        ("table3-B1", 56.0),
        ("table3-B2", 58.4),
        ("table3-C1", 33.7),
        ("table3-C2", 48.4),
        ("table3-C3", 77.8),
        ("table3-C4", 26.8),
        ("table3-C5", 163.9),
        ("table3-C6", 50.5),
        ("table3-C7", 88.3),
        ("big", 214.2),
    ],
)
def test_the_papers_models_have_their_known_sizes(preset: str, size: float) -> None:
    assert millions(preset, 37_000) == pytest.approx(size, abs=0.05)


def test_small_is_as_large_as_with_the_papers_feed_forward_networks() -> None:
    config = build(TrainRecipe, SMALL_PRESET).model
    papers = count_parameters(config, 8000, 8000, is_shared=True).total / 1e6
    assert millions("small", 8000) == pytest.approx(papers, rel=0.01)


@pytest.mark.parametrize("row", [row for row in TABLE_3 if TABLE_3[row].millions])
def test_the_papers_parameter_counts_have_two_vocabularies(row: str) -> None:
    preset, vocab_size = ("big", 36_000) if row == "big" else (PRESET_OF_ROW[row], 40_960)
    assert round(millions(preset, vocab_size)) == TABLE_3[row].millions


def test_operations_grow_with_the_batch_and_training_takes_three_times_as_many() -> None:
    workload = Workload(source_tokens=15, target_tokens=21, source_length=5, target_length=7)
    half = replace(workload, source_tokens=7.5, target_tokens=10.5)
    whole = operations(SMALL, 19, workload)
    assert operations(SMALL, 19, half) == pytest.approx(whole / 2)
    assert training_operations(SMALL, 19, workload) == pytest.approx(3 * whole)


@pytest.mark.parametrize("config", [SMALL, SHAPES["own head sizes"], SHAPES["swiglu"]])
def test_operations_are_those_that_torch_counts(config: ModelConfig) -> None:
    num_sentences, source_length, target_length, size = 3, 5, 7, 19
    cpu = torch.device("cpu")
    target = pack_sequences([[4] * target_length] * num_sentences, cpu)
    batch = Batch(pack_sequences([[3] * source_length] * num_sentences, cpu), target, target.values)
    objective = Objective(Transformer(config, size, size, is_shared=True), TrainingConfig(), None)
    # The counter does not know the other kernels of a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        objective(batch).loss.backward()
    workload = Workload(
        source_tokens=num_sentences * source_length,
        target_tokens=num_sentences * target_length,
        source_length=source_length,
        target_length=target_length,
    )
    counted = training_operations(config, size, workload)
    # Nor does it count the product that the loss adds in place to the output projection's gradient.
    added_in_place = 2 * workload.target_tokens * config.model_size * size
    assert counted == pytest.approx(counter.get_total_flops() + added_in_place, rel=1e-6)


def test_a_window_saves_the_products_beyond_it() -> None:
    workload = Workload(source_tokens=100, target_tokens=80, source_length=50, target_length=40)
    full = training_operations(SHAPES["own head sizes"], 19, workload)
    restricted = training_operations(replace(SHAPES["own head sizes"], window=9), 19, workload)
    # Of keys and values (2 heads of 3 + 5), 4 positions on either side of each, or the last 9.
    source = SMALL.encoder_layers * 100 * (50 - 9) * 16
    target = SMALL.decoder_layers * 80 * (40 - 9) * 16
    assert full - restricted == 3 * 2 * (source + target)
    assert training_operations(replace(SHAPES["own head sizes"], window=100), 19, workload) == full


CHUNK = 233
"""Tokens whose logits exist at the same time; the larger batches have several chunks."""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("checkpointing", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize("num_tokens", [60, 800], ids=["few tokens", "many tokens"])
@pytest.mark.parametrize("size", [200, 3000], ids=["few entries", "many entries"])
@pytest.mark.parametrize("low", [None, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_peak_of_an_update_is_as_estimated(
    low: torch.dtype | None,
    size: int,
    num_tokens: int,
    checkpointing: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objective_module, "chunk_size", lambda *_: CHUNK)
    # As on a GPU, attention keeps no weights.
    monkeypatch.setattr(padded, "MAX_STORED_WEIGHTS", 0)
    config = replace(SMALL, encoder_layers=3, model_size=64, feed_forward_size=256)
    model = Transformer(
        config, size, size, is_shared=True, activation_checkpointing=checkpointing
    ).train()
    optimizer = make_optimizer(model, TrainingConfig())
    sequences = [[3] * 9, [3] * 11] * (num_tokens // 20)
    target = pack_sequences(sequences, CPU)
    batch = Batch(pack_sequences(sequences, CPU), target, target.values)
    objective = Objective(model, TrainingConfig(), low)

    def update() -> None:
        objective(batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    update()
    moments = [tensor for state in optimizer.state.values() for tensor in state.values()]
    with LiveMemory([*model.parameters(), *moments]) as memory:
        update()
    counted = training_memory(
        config,
        count_parameters(config, size, size, is_shared=True),
        size,
        FLOAT32_BYTES if low is None else BFLOAT16_BYTES,
        checkpointing,
        min(CHUNK, num_tokens),
    )
    assert counted.fixed + num_tokens * counted.per_token == pytest.approx(memory.peak, rel=0.25)


def test_the_largest_update_fits_and_one_token_more_does_not() -> None:
    memory = TrainingMemory(fixed=1000, per_token=30)
    assert [memory.largest_update(n) for n in (0, 1000, 1029, 1030, 1060)] == [0, 0, 0, 1, 2]
