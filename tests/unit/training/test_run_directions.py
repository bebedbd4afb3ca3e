"""Training on several directions: how often each is seen, and the same after a resume."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError
from nmtkit.training import run
from tests.messages import refuses
from tests.tiny import prepared, tiny_directions, tiny_train_recipe
from tests.training import logged

DIRECTIONS = ("en-de", "en-nl", "nl-en")


@pytest.fixture(scope="module")
def directions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("directions")
    prepared(tiny_directions(folder), folder / "data")
    return folder / "data"


def test_the_start_says_how_often_each_direction_is_seen(
    directions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    training = replace(recipe.training, sampling_temperature=1000)
    run.train(replace(recipe, training=training), directions, tmp_path)
    start, _, _ = capsys.readouterr().err.partition("event=start")
    for direction in DIRECTIONS:
        assert f"direction {direction}: 8 pairs per epoch, 33." in start
    assert "nl-en: 8 pairs per epoch, 33.3%; it has no validation text" in start


def test_a_resumed_run_samples_as_the_uninterrupted_one(directions: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=6, dropout=0.0)
    recipe = replace(recipe, training=replace(recipe.training, sampling_temperature=5))
    run.train(recipe, directions, tmp_path / "whole")
    for last in (3, 6):
        part = replace(recipe, training=replace(recipe.training, max_updates=last))
        run.train(part, directions, tmp_path / "parts")
    losses = [
        [(one["update"], one["loss"]) for one in logged(tmp_path / name, "training")]
        for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1]
    weights = [
        (tmp_path / name / "checkpoints" / "00000006" / "model.safetensors").read_bytes()
        for name in ("whole", "parts")
    ]
    assert weights[0] == weights[1]


def test_a_temperature_needs_directions(data: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    training = replace(recipe.training, sampling_temperature=5)
    with refuses(ConfigError, f"sampling_temperature 5 {data}; training"):
        run.train(replace(recipe, training=training), data, tmp_path)
