"""Builders of the parts of a run, and readers of its files."""

import io
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.progress.reporter import PlainReporter
from nmtkit.signals import StopRequest
from nmtkit.storage.checkpoint import Resumable, newest_resumable
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.distributed import Ranks
from nmtkit.training.run import make_train_state, make_trainer, train
from nmtkit.training.state import Progress, RunContext
from nmtkit.training.trainer import Trainer
from nmtkit.training.validation import ValidationHistory
from tests.snapshots import read_tensors

CPU = torch.device("cpu")
NOW = datetime(2026, 11, 23, 19, 40, 1)
STAMP = "2026-11-23 19:40:01 "
"""The time of a context made here, and how its lines begin."""


def run_context(
    recipe: TrainRecipe,
    dataset: Dataset,
    run: Path,
    clock: Callable[[], float] = time.monotonic,
    stream: io.StringIO | None = None,
) -> RunContext:
    """Return the context of a run in float32 on one CPU, without logs."""
    return RunContext(
        recipe=recipe,
        dataset=dataset,
        folder=RunFolder.create_or_open(run),
        device=CPU,
        low_precision=None,
        ranks=Ranks(),
        stop=StopRequest(),
        reporter=PlainReporter(stream or io.StringIO(), lambda: NOW),
        logs=(),
        parents=(),
        clock=clock,
    )


def trainer_of(context: RunContext) -> Trainer:
    """Return the trainer of a new run."""
    recipe = context.recipe
    train_state = make_train_state(context, Progress())
    history = ValidationHistory(recipe.validation.best_metric, [])
    return make_trainer(context, train_state, history)


def with_updates(recipe: TrainRecipe, max_updates: int) -> TrainRecipe:
    return replace(recipe, training=replace(recipe.training, max_updates=max_updates))


# ------------------------------------------------------------------------- what a run has left


def last_update(run: Path) -> int:
    return int(_last(run).name)


def last_model(run: Path) -> dict[str, torch.Tensor]:
    return read_tensors(_last(run))


def last_state(run: Path) -> dict[str, torch.Tensor]:
    """Return the tensors saved next to the last model: Adam's moments, and weights with an EMA."""
    return dict(_resumable(run).state_tensors)


def last_values(run: Path) -> dict[str, Any]:
    """Return the progress saved next to the last model."""
    return dict(_resumable(run).state_values)


def logged(run: Path, event: str | None = None) -> list[dict[str, Any]]:
    """Return the records of a run's log: all, or those of one event."""
    lines = (run / "metrics.jsonl").read_text("utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    return [record for record in records if event in (None, record["event"])]


def _resumable(run: Path) -> Resumable:
    resumable = newest_resumable(RunFolder(run), pytest.fail)
    assert resumable is not None
    return resumable


def _last(run: Path) -> Path:
    folder = RunFolder(run).last()
    assert folder is not None
    return folder


def assert_same_tensors(
    first: Mapping[str, torch.Tensor], second: Mapping[str, torch.Tensor]
) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def assert_resumes(recipe: TrainRecipe, data: Path, folder: Path, updates: Iterable[int]) -> None:
    """Check that a run ends as the same run in sessions that end after these updates.

    Their folders are `whole` and `parts`.
    """
    train(recipe, data, folder / "whole")
    for update in updates:
        train(with_updates(recipe, update), data, folder / "parts")
    assert_same_tensors(last_model(folder / "whole"), last_model(folder / "parts"))
