"""Builders of what a run of training consists of."""

import io
import time
from collections.abc import Callable
from pathlib import Path

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.progress.plain import PlainReporter
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.compiling import Execution
from nmtkit.training.distributed import Ranks
from nmtkit.training.run import make_train_state, make_trainer
from nmtkit.training.state import Progress, RunContext
from nmtkit.training.stopping import StopRequest
from nmtkit.training.trainer import Trainer
from nmtkit.training.validation import ValidationHistory

CPU = torch.device("cpu")
FLOAT32 = Execution(precision=None)


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
        execution=FLOAT32,
        ranks=Ranks(),
        stop=StopRequest(),
        reporter=PlainReporter(stream or io.StringIO()),
        logs=(),
        clock=clock,
    )


def trainer_of(context: RunContext) -> Trainer:
    """Return the trainer of a new run."""
    recipe = context.recipe
    train_state = make_train_state(context, Progress())
    history = ValidationHistory(recipe.validation.best_metric, [])
    return make_trainer(context, train_state, history)
