"""The average of the weights is published, and resumed with them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.training.run import train
from nmtkit.training.state import Progress, TrainState
from tests.snapshots import read_tensors
from tests.tiny import tiny_codec, tiny_model, tiny_train_recipe
from tests.training import assert_resumes, logged

NUM_UPDATES = 8
DECAY = 0.9


def recipe_of(max_updates: int, decay: float) -> TrainRecipe:
    return tiny_train_recipe(max_updates, dropout=0.1, ema_decay=decay, keep=NUM_UPDATES)


def tensors_of(run: Path, update: int) -> dict[str, torch.Tensor]:
    return read_tensors(run / "checkpoints" / f"{update:08}")


def test_the_published_weights_are_the_average_of_those_that_training_passed(
    data: Path, tmp_path: Path
) -> None:
    train(recipe_of(NUM_UPDATES, 0.0), data, tmp_path / "plain")
    train(recipe_of(NUM_UPDATES, DECAY), data, tmp_path / "averaged")
    for event, is_equal in (("training", True), ("validation", False)):  # of the average
        plain, averaged = (
            [one["nll"] for one in logged(tmp_path / name, event)] for name in ("plain", "averaged")
        )
        assert (plain == averaged) == is_equal
    names = tensors_of(tmp_path / "plain", 1)
    # From the first checkpoint on, as the weights before the first update are not saved.
    expected = tensors_of(tmp_path / "averaged", 1)
    for update in range(2, NUM_UPDATES + 1):
        decay = min(DECAY, (1 + update) / (10 + update))
        weights = tensors_of(tmp_path / "plain", update)
        expected = {n: decay * expected[n] + (1 - decay) * weights[n] for n in names}
        published = tensors_of(tmp_path / "averaged", update)
        for name in names:
            torch.testing.assert_close(published[name], expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"ema_decay": DECAY},
        {"schedule": "schedule-free", "learning_rate": 0.01, "learning_rate_scale": 1.0},
    ],
)
def test_a_resumed_average_is_the_uninterrupted_one(
    settings: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    recipe = tiny_train_recipe(NUM_UPDATES, dropout=0.1, keep=NUM_UPDATES, **settings)
    assert_resumes(recipe, data, tmp_path, (1, 3, NUM_UPDATES))


def test_tied_weights_stay_tied_in_the_average() -> None:
    model = tiny_model(tiny_codec())
    tied = TrainState.of(model, recipe_of(1, decay=0.5).training, Progress())
    names = dict(model.named_parameters())
    assert dict(tied.published.named_parameters()).keys() == names.keys()
    assert tied.published is not model
