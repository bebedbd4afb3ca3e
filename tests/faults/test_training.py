"""Training whose disk fails once ends where an undisturbed run does; test_storm.py has kills."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.run import train
from tests.faults.harness import Fault, fault_points, run_in_child
from tests.snapshots import read_tensors
from tests.tiny import tiny_train_recipe
from tests.training import assert_same_tensors


@pytest.fixture(scope="module")
def undisturbed(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[range, dict[str, torch.Tensor]]:
    """Return the changes on disk that a whole run makes, and the model it ends with."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    points = fault_points(training(data, run))
    return points, final_model(run)


def training(data: Path, run: Path) -> Callable[[], None]:
    recipe = tiny_train_recipe(max_updates=5, dropout=0.1)
    return lambda: train(recipe, data, run)


def final_model(run: Path) -> dict[str, torch.Tensor]:
    folder = RunFolder.create_or_open(run).last()
    assert folder is not None
    assert folder.name == "00000005"
    return read_tensors(folder)


def test_training_can_be_killed_at_the_same_moments_every_time(
    data: Path, tmp_path: Path, undisturbed: tuple[range, dict[str, torch.Tensor]]
) -> None:
    """Of its two threads, only one at a time changes what is on disk."""
    points, _ = undisturbed
    assert fault_points(training(data, tmp_path / "run")) == points


@pytest.mark.parametrize("mode", ["enospc", "eio"])
def test_one_failure_of_the_disk_while_saving_does_not_end_training(
    data: Path, tmp_path: Path, undisturbed: tuple[range, dict[str, torch.Tensor]], mode: str
) -> None:
    points, expected = undisturbed
    middle = len(points) // 2
    outcome = run_in_child(training(data, tmp_path / "run"), Fault(mode, middle))
    assert not outcome.exception, outcome
    assert_same_tensors(final_model(tmp_path / "run"), expected)
