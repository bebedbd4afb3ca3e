"""Micro-batches are halved until the largest ones fit into a GPU."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nmtkit.config.model import ModelConfig
from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import Batch
from nmtkit.data.binary import Pairs
from nmtkit.data.sampler import Position, Sampler
from nmtkit.errors import ResourceError
from nmtkit.model.transformer import Transformer
from nmtkit.training import fit_memory
from nmtkit.training.fit_memory import (
    USABLE_SHARE,
    Lengths,
    fits,
    fitting_micro_batches,
    largest_micro_batch,
    largest_updates,
)
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.objective import Objective
from tests.messages import refuses
from tests.unit.data.test_sampler import FakeSide

MODEL = ModelConfig(encoder_layers=1, decoder_layers=1, model_size=8, feed_forward_size=8, heads=2)
UPDATES = [np.array([(3, 4)] * 6), np.array([(2, 9), (5, 3)])]
MEMORY = 1000


@pytest.fixture
def objective() -> Objective:
    return Objective(Transformer(MODEL, 19, 19, is_shared=True), TrainingConfig(), None)


def needs(lengths: Lengths) -> tuple[int, ...]:
    """Return tokens, pairs, and the sizes of padded blocks of sources and of targets."""
    blocks = (len(lengths) * int(longest) for longest in lengths.max(axis=0))
    return int(lengths.sum()), len(lengths), *blocks


@pytest.mark.parametrize("number", [1, 8])
def test_no_micro_batch_of_any_update_needs_more_than_those_that_are_tried(number: int) -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(2, 16, (2, 4000, 2))
    lengths[1, 7] = (250, 9)  # among pairs of nine tokens, each is padded to 250
    lengths[0, 8] = (3, 200)
    empty = np.zeros((0, 2), dtype=np.int64)
    shards = [
        Pairs(FakeSide(one[:, 0]), FakeSide(one[:, 1]), ((len(one), 1.0),))
        for one in (*lengths, empty)
    ]
    largest = largest_updates(shards, 2000)
    tried = [needs(largest_micro_batch(update, number)) for update in largest]
    for position, update in Sampler(shards, 2000, seed=3).updates(Position(0, 0, 0)):
        for j in range(min(number, len(update.pairs))):
            pairs = lengths[update.shard][pairs_of(update.pairs, j, number)]
            room = [int(pairs.sum(axis=1).max()), 0, 0, 0]  # micro-batches differ by one pair
            assert all(np.array(needs(pairs)) <= np.max(tried, axis=0) + room)
        if position.epoch == 2:
            break


@pytest.mark.parametrize(("room", "expected"), [(100, 3), (8, 3), (7, 6), (1, 24)])
def test_micro_batches_are_halved_until_they_fit(
    room: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_room(_: object, updates: Sequence[Lengths], reserved: int, number: int) -> bool:
        assert reserved == 7
        return max(map(len, updates)) <= room * number

    monkeypatch.setattr(fit_memory, "fits", has_room)
    gpu: Any = SimpleNamespace(device=torch.device("cuda"))
    objective: Any = SimpleNamespace(model=SimpleNamespace(output_weight=gpu))
    updates = [np.ones((size, 2), dtype=np.int64) for size in (5, 24)]
    monkeypatch.setattr(fit_memory, "largest_updates", lambda *_: updates)
    assert fitting_micro_batches(objective, [], 64, 7, 3) == expected
    monkeypatch.setattr(fit_memory, "fits", lambda *_: False)
    with refuses(ResourceError, "memory; smaller model"):
        fitting_micro_batches(objective, [], 64, 7, 3)


def test_on_a_cpu_nothing_is_tried(objective: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_memory, "fits", pytest.fail)
    assert fitting_micro_batches(objective, [], 64, 0, 3) == 3


@pytest.mark.parametrize(("reserved", "is_enough"), [(500, True), (501, False)])
def test_the_peak_and_what_training_needs_later_leave_a_margin(
    reserved: int, is_enough: bool, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a fake GPU, whose peak can be reset."""
    peak = 9_999
    tried: list[Batch] = []

    def forget(_device: torch.device) -> None:
        nonlocal peak
        peak = 0

    def compute(batch: Batch) -> object:
        nonlocal peak
        peak = max(peak, int(USABLE_SHARE * MEMORY) - 500)
        tried.append(batch)
        return Objective.forward(objective, batch)

    monkeypatch.setattr(objective, "forward", compute)
    monkeypatch.setattr(fit_memory, "reset_peak_memory", forget)
    monkeypatch.setattr(fit_memory, "peak_memory", lambda _device: peak)
    monkeypatch.setattr(fit_memory, "gpu_memory", lambda _device: MEMORY)
    assert fits(objective, UPDATES, reserved, 2) is is_enough
    assert [batch.sizes for batch in tried] == [(9, 12), (2, 9)]
    assert all(parameter.grad is None for parameter in objective.parameters())


def test_running_out_of_memory_is_no_error_and_others_pass(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs_out(_batch: Batch) -> None:
        raise torch.OutOfMemoryError("no room")

    def is_broken(_batch: Batch) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(objective, "forward", runs_out)
    assert not fits(objective, UPDATES, 0, 1)
    monkeypatch.setattr(objective, "forward", is_broken)
    with pytest.raises(RuntimeError, match="a bug"):
        fits(objective, UPDATES, 0, 1)
