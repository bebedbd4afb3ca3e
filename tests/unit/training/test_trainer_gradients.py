"""Gradients of an update: of the mean loss over the tokens read, for any micro-batches."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import Batch, make_batch
from nmtkit.data.binary import Dataset, Indices
from nmtkit.data.sampler import Position, Update
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.text_hook import TrainingText
from nmtkit.training.trainer import Trainer
from nmtkit.training.updates import LoadedUpdate, Start
from tests.training import CPU, run_context, trainer_of

NUMBER = 3


@pytest.fixture
def update(subword_dataset: Dataset) -> Update:
    shard = subword_dataset.train[0]
    lengths = shard.source.lengths().sum(), shard.target.lengths().sum()
    return Update(0, np.arange(len(shard)), int(lengths[0]), int(lengths[1]))


MakeTrainer = Callable[..., Trainer]


@pytest.fixture
def make_trainer(subword_dataset: Dataset, tmp_path: Path) -> MakeTrainer:
    def make(clip_norm: float = 0.0) -> Trainer:
        shape = {"model_size": 16, "feed_forward_size": 32, "heads": 2, "dropout": 0.0}
        layers = {"encoder_layers": 1, "decoder_layers": 1}
        sampling: dict[str, str | float] = {"subword_sampling": "both", "subword_alpha": 0.5}
        recipe = build(TrainRecipe, shape, layers, sampling, {"clip_norm": clip_norm})
        trainer = trainer_of(run_context(recipe, subword_dataset, tmp_path))
        trainer.train_state.model.double()
        return trainer

    return make


def read(dataset: Dataset, recipe: TrainRecipe, pairs: Indices) -> Batch:
    text, shard = TrainingText.of(recipe, dataset), dataset.train[0]
    return make_batch(text.read(shard, text.draw(shard, pairs, NUMBER), NUMBER), CPU)


def loaded_in(trainer: Trainer, update: Update, number: int) -> LoadedUpdate[Batch]:
    """Return an update in a number of micro-batches."""
    dataset, recipe = trainer.context.dataset, trainer.context.recipe
    parts = [pairs_of(update.pairs, j, number) for j in range(number)]
    micro_batches = {j: read(dataset, recipe, part) for j, part in enumerate(parts)}
    return LoadedUpdate(update, Start(Position(0, 0, 1), NUMBER, number), micro_batches)


def gradients(trainer: Trainer) -> torch.Tensor:
    found = [p.grad for p in trainer.objective.parameters() if p.grad is not None]
    return torch.cat([gradient.flatten() for gradient in found])


def mean_loss(trainer: Trainer, update: Update) -> tuple[float, torch.Tensor]:
    """Return the mean loss of the pairs, each in its own batch, and its gradients."""
    losses, num_tokens = [], 0
    for pair in update.pairs:
        batch = read(trainer.context.dataset, trainer.context.recipe, np.array([pair]))
        losses.append(trainer.objective(batch).loss)
        num_tokens += len(batch.target_out)
    mean = torch.stack(losses).sum() / num_tokens
    mean.backward()
    found = gradients(trainer)
    trainer.train_state.clear_gradients()
    assert num_tokens > update.num_target_tokens
    return mean.item(), found


class _Loader:
    """Loads the same update each time."""

    def __init__(self, loaded: LoadedUpdate[Batch]) -> None:
        self.loaded = loaded

    def load(self, *_: object) -> LoadedUpdate[Batch]:
        return self.loaded


def run_update(
    trainer: Trainer, loaded: LoadedUpdate[Batch], monkeypatch: pytest.MonkeyPatch
) -> torch.Tensor:
    """Run an update; return the gradients at Adam's step."""
    applied: list[torch.Tensor] = []
    monkeypatch.setattr(trainer, "loader", _Loader(loaded))
    monkeypatch.setattr(
        trainer.train_state.optimizer, "step", lambda: applied.append(gradients(trainer))
    )
    assert trainer.update()
    trainer.read_results()
    assert all(p.grad is None for p in trainer.objective.parameters())
    (found,) = applied
    return found


@pytest.mark.parametrize("number", [1, 3, 4])
def test_gradients_are_of_the_mean_over_the_tokens_that_were_read(
    number: int, update: Update, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer()
    loss, expected = mean_loss(trainer, update)
    found = run_update(trainer, loaded_in(trainer, update, number), monkeypatch)
    # The loss keeps sums in float32 or better; in float64 only the order of summation differs.
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    record = trainer.meter.record(trainer.train_state.progress, 0.0)
    assert record.gradient_norm == pytest.approx(float(expected.norm()), rel=1e-9)
    assert record.loss == pytest.approx(loss, rel=1e-6)
    batch = read(trainer.context.dataset, trainer.context.recipe, update.pairs)
    assert (record.num_source_tokens, record.num_target_tokens) == batch.sizes


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_gradients_of_a_larger_norm_are_scaled_down_to_the_limit(
    share: float, update: Update, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, free = mean_loss(make_trainer(), update)
    norm = float(free.norm())
    trainer = make_trainer(clip_norm=share * norm)
    found = run_update(trainer, loaded_in(trainer, update, 2), monkeypatch)
    record = trainer.meter.record(trainer.train_state.progress, 0.0)
    assert record.gradient_norm == pytest.approx(norm, rel=1e-9)
    torch.testing.assert_close(found, min(1.0, share) * free, rtol=1e-9, atol=1e-12)


def test_an_update_that_is_stopped_leaves_no_gradients(
    update: Update, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer()
    trainer.context.stop.note([1] * len(trainer.context.stop.requests))
    monkeypatch.setattr(trainer, "loader", _Loader(loaded_in(trainer, update, 2)))
    assert not trainer.update()
    assert all(p.grad is None for p in trainer.objective.parameters())
    assert trainer.train_state.progress.update == 0
