"""The EMA is published, and resumed with the weights."""

import json
from dataclasses import replace
from pathlib import Path

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.run import train
from nmtkit.training.state import Progress, TrainState
from tests.snapshots import read_tensors
from tests.tiny import tiny_codec, tiny_model, tiny_train_recipe

NUM_UPDATES = 8
DECAY = 0.9


def recipe_of(max_updates: int, decay: float) -> TrainRecipe:
    recipe = tiny_train_recipe(max_updates=max_updates, dropout=0.1)
    training = replace(recipe.training, ema_decay=decay)
    checkpoints = replace(recipe.checkpoints, keep=NUM_UPDATES)
    return replace(recipe, training=training, checkpoints=checkpoints)


def tensors_of(run: Path, update: int) -> dict[str, torch.Tensor]:
    return read_tensors(run / "checkpoints" / f"{update:08}")


def test_the_published_weights_are_the_average_of_those_that_training_passed(
    data: Path, tmp_path: Path
) -> None:
    train(recipe_of(NUM_UPDATES, 0.0), data, tmp_path / "plain")
    train(recipe_of(NUM_UPDATES, DECAY), data, tmp_path / "averaged")
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


def test_a_resumed_average_is_the_uninterrupted_one(data: Path, tmp_path: Path) -> None:
    train(recipe_of(NUM_UPDATES, DECAY), data, tmp_path / "whole")
    for update in range(1, NUM_UPDATES + 1):
        train(recipe_of(update, DECAY), data, tmp_path / "parts")
    whole, parts = (tensors_of(tmp_path / name, NUM_UPDATES) for name in ("whole", "parts"))
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name


def test_validation_uses_the_average(data: Path, tmp_path: Path) -> None:
    recipe = recipe_of(NUM_UPDATES, DECAY)
    train(recipe, data, tmp_path)
    lines = map(json.loads, (tmp_path / "metrics.jsonl").read_text("utf-8").splitlines())
    last = [line for line in lines if line["event"] == "validation"][-1]
    folder = RunFolder(tmp_path).last()
    assert folder is not None
    loaded = load_model(folder, torch.device("cpu")).model
    train(replace(recipe, training=replace(recipe.training, ema_decay=0.0)), data,
          tmp_path / "plain")  # fmt: skip
    plain = map(json.loads, (tmp_path / "plain" / "metrics.jsonl").read_text("utf-8").splitlines())
    other = [line for line in plain if line["event"] == "validation"][-1]
    assert last["nll"] != other["nll"]
    assert sum(p.numel() for p in loaded.parameters()) > 0


def test_tied_weights_stay_tied_in_the_average() -> None:
    model = tiny_model(tiny_codec())
    tied = TrainState.of(
        model, replace(tiny_train_recipe(1, 0.0).training, ema_decay=0.5), Progress()
    )
    names = dict(model.named_parameters())
    assert dict(tied.published.named_parameters()).keys() == names.keys()
    assert tied.published is not model
