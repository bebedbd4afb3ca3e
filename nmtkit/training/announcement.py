"""The lines and the record with which training starts.

A module of its own: run.py composes a run, and this one only describes it.
"""

import math
import platform
from datetime import UTC, datetime
from pathlib import Path

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import ModelConfig
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import epoch_tokens
from nmtkit.model.kernels import flash
from nmtkit.progress.records import SessionRecord
from nmtkit.runtime.devices import device_name
from nmtkit.runtime.processor import processor_name
from nmtkit.training.distributed import Ranks
from nmtkit.training.optimizer import highest_learning_rate
from nmtkit.training.trainer import Trainer
from nmtkit.version import __version__


def announce(trainer: Trainer) -> None:
    """Report the sizes of model and data, the devices, and where the run continues."""
    context, progress = trainer.context, trainer.train_state.progress
    recipe, dataset = context.recipe, context.dataset
    parameters = sum(p.numel() for p in trainer.train_state.model.parameters())
    planned, warmup = planned_updates(recipe, dataset), recipe.training.warmup_updates
    peak = highest_learning_rate(recipe.model.model_size, recipe.training, planned)
    precision = context.execution.precision or torch.float32
    context.reporter.message(
        f"parameters={parameters} pairs={dataset.num_train_pairs} "
        f"source_entries={dataset.codec.source.size} target_entries={dataset.codec.target.size} "
        f"peak_learning_rate={peak:.3g} "
        f"device={context.device} ranks={context.ranks.size} threads={torch.get_num_threads()} "
        f"micro_batches={trainer.micro_batches.at(progress.update + 1)} "
        f"precision={str(precision).removeprefix('torch.')} "
        f"attention={_attention(recipe.model, context.device, precision)} "
        f"compile={'on' if context.execution.is_compiled else 'off'}"
    )
    if planned < warmup:
        end = "max_updates" if planned == recipe.training.max_updates else "max_epochs"
        about = "" if end == "max_updates" else f", about {planned:,} updates"
        context.reporter.message(
            f"the run ends within its warm-up of {warmup:,} updates, with a learning rate of "
            f"{peak:.3g}: {end} is {getattr(recipe.training, end):,}{about}; give more "
            f"--{end.replace('_', '-')}, or fewer --warmup-updates in a new run"
        )
    if progress.update:
        context.reporter.message(f"continuing after update {progress.update}")


def describe_session(
    update: int, data_dir: Path, device: torch.device, ranks: Ranks
) -> SessionRecord:
    """Describe when, on what and with what a session starts after an update."""
    return SessionRecord(
        update=update,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        data=str(data_dir),
        device=device_name(device),
        processor=processor_name(),
        threads=torch.get_num_threads(),
        ranks=ranks.size,
        nmtkit=__version__,
        torch=torch.__version__,
        python=platform.python_version(),
    )


def planned_updates(recipe: TrainRecipe, dataset: Dataset) -> int:
    """Return the number of updates until --max-updates or --max-epochs ends the run.

    Epochs are counted as if each update had --update-tokens on one side; they have a few percent
    more updates.
    """
    training = recipe.training
    if not training.max_epochs:
        return training.max_updates
    of_epochs = math.ceil(training.max_epochs * epoch_tokens(dataset) / training.update_tokens)
    return min(training.max_updates, of_epochs)


def _attention(config: ModelConfig, device: torch.device, precision: torch.dtype) -> str:
    """Return the implementation of self-attention: flash, windowed or padded."""
    if flash.is_supported(device, precision, config.head_sizes, config.attention_dropout):
        return "flash"
    return "windowed" if config.window else "padded"
