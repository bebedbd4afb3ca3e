"""Counts from the shape equal the tensors that autograd saves, and the peak of an update."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from benchmarks.live_memory import LiveMemory
from nmtkit.config.training import ModelConfig, TrainingConfig
from nmtkit.data.batch import Batch
from nmtkit.model.estimate.cost import count_parameters
from nmtkit.model.estimate.memory import (
    BFLOAT16_BYTES,
    FLOAT32_BYTES,
    TrainingMemory,
    activations,
)
from nmtkit.model.kernels import padded
from nmtkit.model.transformer import Transformer
from nmtkit.packed import pack_sequences
from nmtkit.training import objective as training
from nmtkit.training.objective import Objective
from nmtkit.training.optimizer import make_adam

CPU = torch.device("cpu")
CHUNK = 233
"""Tokens whose logits exist at the same time; the larger batches have several chunks."""
SMALL = ModelConfig(
    encoder_layers=2, decoder_layers=3, model_size=32, feed_forward_size=128, heads=2
)
SHAPES = {
    "plain": SMALL,
    "pre-norm": replace(SMALL, norm="pre"),
    "without dropout": replace(SMALL, dropout=0.0),
    "inner dropout": replace(SMALL, activation_dropout=0.1),
    "silu": replace(SMALL, activation="silu"),
    "wide heads": replace(SMALL, key_size=64, value_size=64),
    "learned positions": replace(SMALL, positions="learned", max_positions=64),
    "a deep encoder": replace(SMALL, encoder_layers=5, decoder_layers=1),
}


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use torch's own attention kernel in bfloat16 too, as the counts assume."""
    monkeypatch.setattr(padded, "MAX_STORED_WEIGHTS", 0)


def kept_bytes(model: Transformer, lengths: tuple[int, int], low: torch.dtype | None) -> int:
    """Return the bytes that a forward pass saves, except weights and copies of them."""
    # Lengths differ, as in training. The number of tokens needs no padded rows on a CPU.
    source, target = ([[3] * (length - 1), [3] * (length + 1)] * 32 for length in lengths)
    target_in = pack_sequences(target, CPU)
    batch = Batch(pack_sequences(source, CPU), target_in, target_in.values)
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        Objective(model, 0.1, low)(batch)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def measured(
    config: ModelConfig, low: torch.dtype | None, checkpointing: bool
) -> tuple[float, float]:
    """Return the bytes per source token and per target token, as differences of two batches."""
    model = Transformer(
        config, 19, 19, is_shared=True, activation_checkpointing=checkpointing
    ).train()
    few, more_source, more_target = (
        kept_bytes(model, lengths, low) for lengths in ((9, 9), (19, 9), (9, 19))
    )
    num_tokens = 10 * 64
    return (more_source - few) / num_tokens, (more_target - few) / num_tokens


@pytest.mark.parametrize(
    ("low", "product_bytes"),
    [(None, FLOAT32_BYTES), (torch.bfloat16, BFLOAT16_BYTES)],
    ids=["float32", "bfloat16"],
)
@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
@pytest.mark.usefixtures("fused")
def test_counted_activations_equal_the_saved_tensors(
    config: ModelConfig, low: torch.dtype | None, product_bytes: int
) -> None:
    source, target = measured(config, low, checkpointing=False)
    counted = activations(config, product_bytes, activation_checkpointing=False)
    assert counted.source == pytest.approx(source, rel=0.05)
    assert counted.target == pytest.approx(target, rel=0.05)


@pytest.mark.parametrize("config", [SMALL, SHAPES["pre-norm"], SHAPES["a deep encoder"]])
def test_with_recomputing_a_token_keeps_the_inputs_of_layers(config: ModelConfig) -> None:
    source, target = measured(config, None, checkpointing=True)
    counted = activations(config, FLOAT32_BYTES, activation_checkpointing=True)
    # The memory is held by a function that layers receive, which hooks do not see.
    memory = FLOAT32_BYTES * config.model_size
    assert counted.source == pytest.approx(source + memory, rel=0.05)
    assert counted.target == pytest.approx(target, rel=0.05)


@pytest.mark.parametrize("window", [4, 8])
def test_a_window_saves_little_more_than_is_counted(window: int) -> None:
    config = replace(SMALL, window=window)
    source, target = measured(config, None, checkpointing=False)
    counted = activations(config, FLOAT32_BYTES, activation_checkpointing=False)
    assert counted.source < source < 1.15 * counted.source
    assert counted.target < target < 1.15 * counted.target


def test_unequal_head_sizes_save_little_more_than_is_counted() -> None:
    config = replace(SMALL, key_size=4)  # a CPU has no fused kernel for them
    source, target = measured(config, None, checkpointing=False)
    counted = activations(config, FLOAT32_BYTES, activation_checkpointing=False)
    assert counted.source == pytest.approx(source, rel=0.15)
    assert counted.target == pytest.approx(target, rel=0.15)


def batch_of(num_tokens: int) -> Batch:
    """Return a batch with `num_tokens` tokens per side."""
    sequences = [[3] * 9, [3] * 11] * (num_tokens // 20)
    target = pack_sequences(sequences, CPU)
    return Batch(pack_sequences(sequences, CPU), target, target.values)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("checkpointing", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize("num_tokens", [60, 800], ids=["few tokens", "many tokens"])
@pytest.mark.parametrize("size", [200, 5000], ids=["few entries", "many entries"])
@pytest.mark.parametrize("low", [None, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.usefixtures("fused")
def test_the_peak_of_an_update_is_as_counted(
    low: torch.dtype | None,
    size: int,
    num_tokens: int,
    checkpointing: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "chunk_size", lambda *_: CHUNK)
    model = Transformer(
        SMALL, size, size, is_shared=True, activation_checkpointing=checkpointing
    ).train()
    adam = make_adam(model, TrainingConfig())
    objective, batch = Objective(model, 0.1, low), batch_of(num_tokens)

    def update() -> None:
        objective(batch).loss.backward()
        adam.step()
        adam.zero_grad()

    update()
    moments = [tensor for state in adam.state.values() for tensor in state.values()]
    with LiveMemory([*model.parameters(), *moments]) as memory:
        update()
    parameters = count_parameters(SMALL, size, size, is_shared=True)
    product_bytes = FLOAT32_BYTES if low is None else BFLOAT16_BYTES
    counted = TrainingMemory(SMALL, parameters, size, product_bytes, checkpointing, CHUNK)
    assert counted.peak(*batch.sizes) == pytest.approx(memory.peak, rel=0.15)


def test_the_largest_batch_fits_and_one_token_more_does_not() -> None:
    parameters = count_parameters(SMALL, 19, 19, is_shared=True)
    memory = TrainingMemory(SMALL, parameters, 19, FLOAT32_BYTES, False, CHUNK)
    for limit in (memory.peak(0, 0), 10_000_000, 1_000_000_000):
        largest = memory.largest_batch(limit)
        assert memory.peak(largest, largest) <= limit < memory.peak(largest + 1, largest + 1)
    assert memory.largest_batch(memory.peak(0, 0) - 1) == 0
