"""The context of a run, which does not change, and the training state, which does."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import TrainingConfig
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position
from nmtkit.errors import DivergedError, LostRankError
from nmtkit.model.transformer import Transformer
from nmtkit.progress.records import Log
from nmtkit.progress.reporter import ProgressReporter
from nmtkit.signals import StopRequest
from nmtkit.storage.manifest import Json
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.distributed import Ranks
from nmtkit.training.optimizer import (
    WeightAverage,
    make_average,
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
    step_unless,
)
from nmtkit.training.validation import ValidationHistory
from nmtkit.units import SECONDS_PER_MINUTE

MAX_SKIPPED_IN_A_ROW = 10
"""Training has diverged if this many of the last updates had no finite gradient."""

_WEIGHTS = "weights"
"""With an average, the weights themselves are saved under this name, next to the moments."""


@dataclass(frozen=True)
class RunContext:
    """Settings, data, folder, device and ranks of a run.

    Attributes:
        recipe: all settings.
        dataset: training and validation pairs.
        folder: where checkpoints and logs are saved.
        device: where this rank computes.
        low_precision: type of matrix products; None = type of the weights.
        ranks: all processes of the run.
        stop: requests to stop.
        reporter: shows progress.
        logs: keep records; none on ranks other than the first.
        parents: see `nmtkit.training.initialization.Origin`.
        clock: seconds from an arbitrary start, never going back.
    """

    recipe: TrainRecipe
    dataset: Dataset
    folder: RunFolder
    device: torch.device
    low_precision: torch.dtype | None
    ranks: Ranks
    stop: StopRequest
    reporter: ProgressReporter
    logs: Sequence[Log]
    parents: Sequence[Json]
    clock: Callable[[], float]

    def end_if_stop_requested(self, update: int) -> None:
        """End all ranks if any rank was asked to stop.

        Args:
            update: the last update, which is saved.

        Raises:
            StoppedError, InterruptedByUserError: a rank was asked to stop.
        """
        self.stop.note(self.ranks.sum(torch.tensor(self.stop.requests)).tolist())
        if self.stop.is_requested:
            raise self.ranks.report_once(self.stop.error(update))


@dataclass
class Progress:
    """Progress of a run: plain values, saved with every checkpoint.

    Attributes:
        update: number of updates done, skipped ones included.
        position: where the sampler continues.
        seconds: training time of all sessions.
        num_skipped: updates skipped because a gradient was not finite.
        num_skipped_in_a_row: how many of the last updates were skipped.
        num_micro_batches: micro-batches of the run's first update; 0 = not decided yet.
    """

    update: int = 0
    position: Position = field(default_factory=lambda: Position(0, 0, 0))
    seconds: float = 0.0
    num_skipped: int = 0
    num_skipped_in_a_row: int = 0
    num_micro_batches: int = 0

    @property
    def ends_epoch(self) -> bool:
        """Whether the last update was the last one of its epoch."""
        return self.update > 0 and self.position.shard == self.position.index == 0


def too_many_skipped(progress: Progress) -> DivergedError:
    """Return the error of a run whose last updates were all skipped."""
    return DivergedError(
        f"training diverged: the gradients of {progress.num_skipped_in_a_row} updates in a row, up "
        f"to update {progress.update}, are not finite; the last checkpoint is kept; start a run in "
        "another --out with a lower learning rate, more --warmup-updates, or --clip-norm"
    )


def is_complete(recipe: TrainRecipe, progress: Progress, history: ValidationHistory) -> bool:
    """Return whether the run has reached an end: updates, epochs, minutes or patience."""
    config, patience = recipe.training, recipe.validation.patience
    return (
        progress.update >= config.max_updates
        or 0 < config.max_epochs <= progress.position.epoch
        or 0 < config.max_minutes * SECONDS_PER_MINUTE <= progress.seconds
        or 0 < patience <= history.num_stale
    )


def needs_validation(recipe: TrainRecipe, progress: Progress, history: ValidationHistory) -> bool:
    """Return whether validation is on and the model of the last update is not validated yet."""
    return recipe.validation.validate_every > 0 and 0 < progress.update != history.last_update


@dataclass
class TrainState:
    """The state that a checkpoint saves: weights, the optimiser's state, average, progress.

    Attributes:
        model: the weights that updates change.
        optimizer: the optimiser with its state.
        average: of the weights, if the recipe asks for one.
        progress: updates done, position in the data, time.
    """

    model: Transformer
    optimizer: torch.optim.Optimizer
    average: WeightAverage | None
    progress: Progress

    @staticmethod
    def of(model: Transformer, config: TrainingConfig, progress: Progress) -> "TrainState":
        """Return the state of an untrained model."""
        optimizer, average = make_optimizer(model, config), make_average(model, config)
        return TrainState(model, optimizer, average, progress)

    @property
    def published(self) -> Transformer:
        """The model that is validated and saved: the average if there is one."""
        return self.average.model if self.average else self.model

    def step(self, learning_rate: float, is_skipped: Tensor) -> None:
        """Run the optimiser and the average, and clear the gradients.

        `progress.update` is this update.

        Args:
            learning_rate: of this update.
            is_skipped: (), bool, on the device: the optimiser leaves weights and moments unchanged.
        """
        factor = self.average.rate_factor if self.average else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate * factor
        step_unless(self.optimizer, is_skipped)
        self.clear_gradients()
        if self.average:
            self.average.add(self.model, self.progress.update)

    def clear_gradients(self) -> None:
        """Drop the gradients."""
        self.optimizer.zero_grad()

    def check_agreement(self, ranks: Ranks) -> None:
        """Check after an update that all ranks have the same weights.

        Raises:
            LostRankError, ReportedElsewhereError: they differ; or see `Ranks.exchange`.
            DivergedError: they are finite on no rank.
        """
        if ranks.is_alone:
            return
        own = sum(float(p.detach().sum(dtype=torch.float64)) for p in self.model.parameters())
        sums = ranks.gather(own)
        if not any(map(math.isfinite, sums)):
            raise ranks.report_once(
                DivergedError(
                    "training diverged: the weights are not finite after update "
                    f"{self.progress.update}; start a run in another --out with a lower "
                    "learning rate, or with --clip-norm"
                )
            )
        is_equal = np.isclose(sums, sums[0], rtol=1e-9, atol=0, equal_nan=True)
        strays = np.flatnonzero(~is_equal).tolist()
        if strays:
            names = " and ".join(f"rank {rank}" for rank in strays)
            raise ranks.report_once(
                LostRankError(
                    f"the weights of {names} differ from rank 0's after update "
                    f"{self.progress.update}: a device computes wrongly, or runs other software; "
                    "fix it, and run the same command again to continue from the last checkpoint"
                )
            )

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the tensors saved next to the published model, named "<parameter>.<kind>"."""
        tensors = optimizer_tensors(self.optimizer, self.model)
        if self.average:
            for name, parameter in self._trained_parameters():
                tensors[f"{name}.{_WEIGHTS}"] = parameter.detach()
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the tensors of `state_tensors`, after the published model is restored."""
        moments = {name: t for name, t in tensors.items() if _kind(name) != _WEIGHTS}
        restore_optimizer(self.optimizer, self.model, moments)
        if self.average:
            for name, parameter in self._trained_parameters():
                parameter.data.copy_(tensors[f"{name}.{_WEIGHTS}"])

    def _trained_parameters(self) -> list[tuple[str, Tensor]]:
        """Return the parameters that updates change; the average shares the frozen ones."""
        named = self.model.named_parameters()
        return [(name, parameter) for name, parameter in named if parameter.requires_grad]


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
