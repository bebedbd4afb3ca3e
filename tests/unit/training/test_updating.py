"""Gradients of an update: of the mean loss over the tokens that were read, however it is cut."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import Batch, batch_of
from nmtkit.data.binary import Dataset, Indices
from nmtkit.data.sampler import Position, Update
from nmtkit.training.compiling import Execution
from nmtkit.training.distributed import Ranks
from nmtkit.training.reading import Reading
from nmtkit.training.run import make_learner, make_objective
from nmtkit.training.segmentation import Segmentation
from nmtkit.training.slots import Cut, own_slots
from nmtkit.training.stopping import StopRequest
from nmtkit.training.updating import Updater
from tests.tiny import tiny_subword_dataset

CPU = torch.device("cpu")
NUMBER = 3


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(tiny_subword_dataset(tmp_path_factory.mktemp("corpus")))


@pytest.fixture
def update(dataset: Dataset) -> Update:
    shard = dataset.train[0]
    lengths = shard.source.lengths().sum(), shard.target.lengths().sum()
    return Update(0, np.arange(len(shard)), int(lengths[0]), int(lengths[1]))


MakeUpdater = Callable[..., Updater]


@pytest.fixture
def make_updater(dataset: Dataset) -> MakeUpdater:
    def make(clip_norm: float = 0.0) -> Updater:
        shape = {"model_size": 16, "feed_forward_size": 32, "heads": 2, "dropout": 0.0}
        layers = {"encoder_layers": 1, "decoder_layers": 1}
        sampling: dict[str, str | float] = {"subword_sampling": "both", "subword_alpha": 0.5}
        recipe = build(TrainRecipe, shape, layers, sampling, {"clip_norm": clip_norm})
        execution = Execution(precision=None)
        learner = make_learner(recipe, dataset, CPU, execution)
        learner.model.double()
        objective = make_objective(recipe, learner.model, execution).train()
        return Updater(objective, learner, recipe, Ranks(), StopRequest())

    return make


def read(dataset: Dataset, recipe: TrainRecipe, pairs: Indices) -> Batch:
    segmentation = Segmentation.of(recipe, dataset.codec)
    return batch_of(*segmentation.read(dataset.train[0], pairs, NUMBER), CPU)


def reading_of(updater: Updater, dataset: Dataset, update: Update, cut: Cut) -> Reading:
    slots = own_slots(update, cut, rank=0, num_ranks=1)
    batches = ((slot, read(dataset, updater.recipe, slot.pairs)) for slot in slots)
    return Reading(update, NUMBER, Position(0, 0, 1), batches)


def gradients(updater: Updater) -> torch.Tensor:
    found = [p.grad for p in updater.objective.parameters() if p.grad is not None]
    return torch.cat([gradient.flatten() for gradient in found])


def mean_gradients(updater: Updater, dataset: Dataset, update: Update) -> torch.Tensor:
    """Differentiate the mean of the losses of the pairs, each read on its own."""
    losses, num_tokens = [], 0
    for pair in update.pairs:
        batch = read(dataset, updater.recipe, np.array([pair]))
        losses.append(updater.objective(batch).smoothed)
        num_tokens += len(batch.target_out)
    (torch.stack(losses).sum() / num_tokens).backward()
    found = gradients(updater)
    updater.drop()
    assert num_tokens > update.num_target_tokens
    return found


@pytest.mark.parametrize("cut", [Cut(1, 1), Cut(3, 1), Cut(2, 2)])
def test_gradients_are_of_the_mean_over_the_tokens_that_were_read(
    cut: Cut, dataset: Dataset, update: Update, make_updater: MakeUpdater
) -> None:
    updater = make_updater()
    expected = mean_gradients(updater, dataset, update)
    sums = updater.compute(reading_of(updater, dataset, update, cut), lambda: 7.0)
    assert sums is not None
    # The loss keeps sums in float32 or better; in float64 only the order of summation differs.
    torch.testing.assert_close(gradients(updater), expected, rtol=1e-9, atol=1e-12)
    assert sums.gradient_norm == pytest.approx(float(expected.norm()), rel=1e-9)
    batch = read(dataset, updater.recipe, update.pairs)
    assert (sums.num_source_tokens, sums.num_target_tokens) == batch.sizes
    assert sums.elapsed_s == 7.0


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_gradients_of_a_larger_norm_are_scaled_down_to_the_limit(
    share: float, dataset: Dataset, update: Update, make_updater: MakeUpdater
) -> None:
    free = mean_gradients(make_updater(), dataset, update)
    norm = float(free.norm())
    updater = make_updater(clip_norm=share * norm)
    sums = updater.compute(reading_of(updater, dataset, update, Cut(2, 1)), lambda: 0.0)
    assert sums is not None
    assert sums.gradient_norm == pytest.approx(norm, rel=1e-9)
    scale = min(1.0, share)
    torch.testing.assert_close(gradients(updater), scale * free, rtol=1e-9, atol=1e-12)


def test_an_update_that_is_stopped_leaves_no_gradients(
    dataset: Dataset, update: Update, make_updater: MakeUpdater
) -> None:
    updater = make_updater()
    updater.stop.note([1] * len(updater.stop.requests))
    reading = reading_of(updater, dataset, update, Cut(2, 1))
    assert updater.compute(reading, lambda: 0.0) is None
    assert all(p.grad is None for p in updater.objective.parameters())
