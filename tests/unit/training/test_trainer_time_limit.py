"""--max-minutes ends a run by its training time, earlier sessions included."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.training.run import train
from nmtkit.training.trainer import Trainer
from tests.doubles import Clock
from tests.tiny import tiny_train_recipe
from tests.training import last_update

MANY_UPDATES = 50


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the trainer's clock; every update takes a minute of it."""
    made = Clock()
    forward_backward = Trainer._forward_backward

    def take_a_minute(self: Trainer, *arguments: Any, is_last: bool) -> torch.Tensor:
        made.now += 60 if is_last else 0
        return forward_backward(self, *arguments, is_last=is_last)

    monkeypatch.setattr(Trainer, "_forward_backward", take_a_minute)
    return made


def recipe_of_minutes(max_minutes: float, max_updates: int = MANY_UPDATES) -> TrainRecipe:
    recipe = tiny_train_recipe(max_updates, dropout=0.0)
    return replace(recipe, training=replace(recipe.training, max_minutes=max_minutes))


@pytest.mark.parametrize(("max_minutes", "updates"), [(3.0, 3), (2.5, 3), (0.1, 1)])
def test_a_run_ends_with_the_first_update_after_its_minutes(
    max_minutes: float, updates: int, data: Path, tmp_path: Path, clock: Clock
) -> None:
    train(recipe_of_minutes(max_minutes), data, tmp_path, clock)
    assert last_update(tmp_path) == updates
    assert clock.now == 1000 + 60 * updates


def test_minutes_of_0_are_no_limit(data: Path, tmp_path: Path, clock: Clock) -> None:
    train(recipe_of_minutes(0.0, max_updates=6), data, tmp_path, clock)
    assert last_update(tmp_path) == 6
    assert clock.now == 1000 + 60 * 6


def test_minutes_of_all_sessions_count_and_the_time_between_them_does_not(
    data: Path, tmp_path: Path, clock: Clock
) -> None:
    train(recipe_of_minutes(5.0, max_updates=2), data, tmp_path, clock)
    clock.now += 1e6
    train(recipe_of_minutes(5.0), data, tmp_path, clock)
    assert last_update(tmp_path) == 5


def test_a_run_whose_minutes_are_over_is_complete_until_they_are_raised(
    data: Path, tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    train(recipe_of_minutes(2.0), data, tmp_path, clock)
    clock.now = 5.0  # another machine, or another boot
    capsys.readouterr()
    train(recipe_of_minutes(2.0), data, tmp_path, clock)
    assert "already complete after update 2" in capsys.readouterr().err
    train(recipe_of_minutes(4.0), data, tmp_path, clock)
    assert last_update(tmp_path) == 4
