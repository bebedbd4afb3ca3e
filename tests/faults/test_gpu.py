"""On one GPU, with --deterministic, a run that is resumed is the uninterrupted one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.training.run import train
from tests.tiny import tiny_dataset, tiny_train_recipe
from tests.training import last_model

NUM_UPDATES = 8


@pytest.fixture(autouse=True)
def _leaves_torch_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # As --deterministic sets it; it is put back afterwards.
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    yield
    torch.use_deterministic_algorithms(False)


def recipe_of(max_updates: int) -> TrainRecipe:
    recipe = tiny_train_recipe(max_updates, dropout=0.1)
    return replace(
        recipe,
        runtime=replace(recipe.runtime, device="cuda"),
        engine=replace(recipe.engine, deterministic=True),
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU to train on")
def test_a_run_resumed_after_every_update_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    data = tiny_dataset(tmp_path)
    train(recipe_of(NUM_UPDATES), data, tmp_path / "whole")
    for update in range(1, NUM_UPDATES + 1):
        train(recipe_of(update), data, tmp_path / "parts")
    whole, parts = last_model(tmp_path / "whole"), last_model(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name
