"""What a run is given, and what it changes: the run's context and the training state."""

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
from nmtkit.storage.checkpoint import Resumable
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.compiling import Execution
from nmtkit.training.distributed import Ranks
from nmtkit.training.optimizer import (
    MovingAverage,
    make_adam,
    optimizer_tensors,
    restore_optimizer,
)
from nmtkit.training.stopping import StopRequest

_WEIGHTS = "weights"
"""With an EMA, the weights themselves are saved next to Adam's moments under this name."""


@dataclass(frozen=True)
class RunContext:
    """Settings, data, place and company of a run.

    Attributes:
        recipe: all settings.
        dataset: what it trains on.
        folder: where it is saved.
        device: where this rank computes.
        execution: precision and compiled functions.
        ranks: all processes of the run.
        stop: requests to end it.
        reporter: shows progress.
        logs: keep records; none on ranks other than the first.
        clock: seconds from an arbitrary start, never going back.
    """

    recipe: TrainRecipe
    dataset: Dataset
    folder: RunFolder
    device: torch.device
    execution: Execution
    ranks: Ranks
    stop: StopRequest
    reporter: ProgressReporter
    logs: Sequence[Log]
    clock: Callable[[], float]


@dataclass
class Progress:
    """How far a run is: plain values, saved with every checkpoint.

    Attributes:
        update: optimiser updates done, skipped ones counted.
        position: where the sampler continues.
        seconds: time spent in training, all sessions together.
        num_skipped: updates skipped because a gradient was not finite.
        num_skipped_in_a_row: length of the last run of skipped updates.
        num_micro_batches: of the run's first update; 0 = not decided yet.
    """

    update: int = 0
    position: Position = field(default_factory=lambda: Position(0, 0, 0))
    seconds: float = 0.0
    num_skipped: int = 0
    num_skipped_in_a_row: int = 0
    num_micro_batches: int = 0

    @staticmethod
    def of(resumable: Resumable | None) -> "Progress":
        """Return the progress at a checkpoint; without one, that of a new run."""
        if resumable is None:
            return Progress()
        values = resumable.state_values
        return Progress(**{**values, "position": Position(**values["position"])})


@dataclass
class TrainState:
    """All that a checkpoint holds: weights, Adam's moments, the EMA, the run's progress.

    Attributes:
        model: the weights that the next update changes.
        optimizer: Adam with its moments.
        ema: the moving average of the weights, if the recipe asks for one.
        progress: how far the run is.
    """

    model: Transformer
    optimizer: torch.optim.Adam
    ema: MovingAverage | None
    progress: Progress

    @staticmethod
    def of(model: Transformer, config: TrainingConfig, progress: Progress) -> "TrainState":
        """Return the state of a model that was not trained yet."""
        ema = MovingAverage(model, config.average_decay) if config.average_decay else None
        return TrainState(model, make_adam(model, config), ema, progress)

    @property
    def published(self) -> Transformer:
        """The model that is validated and saved, and that translates."""
        return self.ema.model if self.ema else self.model

    def step(self, learning_rate: float) -> None:
        """Have Adam apply the gradients, and clear them; `progress` names the update already."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self.clear_gradients()
        self.progress.num_skipped_in_a_row = 0
        if self.ema:
            self.ema.add(self.model, self.progress.update)

    def clear_gradients(self) -> None:
        """Drop the gradients."""
        self.optimizer.zero_grad()

    def check_agreement(self, ranks: Ranks) -> None:
        """Check after an update that all ranks hold the same weights.

        Raises:
            LostRankError, ToldElsewhereError: they do not; or see `Ranks.exchange`.
            DivergedError: they are finite on no rank.
        """
        if ranks.is_alone:
            return
        own = sum(float(p.detach().sum(dtype=torch.float64)) for p in self.model.parameters())
        sums = ranks.gather(own)
        if not any(map(math.isfinite, sums)):
            raise ranks.told_once(
                DivergedError(
                    "training diverged: the weights are not finite after update "
                    f"{self.progress.update}; begin again in another --out with a lower "
                    "learning rate, or with --clip-norm"
                )
            )
        is_equal = np.isclose(sums, sums[0], rtol=1e-9, atol=0, equal_nan=True)
        strays = np.flatnonzero(~is_equal).tolist()
        if strays:
            names = " and ".join(f"rank {rank}" for rank in strays)
            raise ranks.told_once(
                LostRankError(
                    f"the weights of {names} are not those of rank 0 after update "
                    f"{self.progress.update}: a device computes wrongly, or runs other software; "
                    "fix it, and run the same command again to continue from the last checkpoint"
                )
            )

    def state_tensors(self) -> dict[str, Tensor]:
        """Return what is saved next to the published model, named "<parameter>.<what>"."""
        tensors = optimizer_tensors(self.optimizer, self.model)
        if self.ema:
            for name, parameter in self.model.named_parameters():
                tensors[f"{name}.{_WEIGHTS}"] = parameter.detach()
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `state_tensors` returned; the published model is restored before."""
        moments = {name: t for name, t in tensors.items() if _kind(name) != _WEIGHTS}
        restore_optimizer(self.optimizer, self.model, moments)
        if self.ema:
            for name, parameter in self.model.named_parameters():
                parameter.data.copy_(tensors[f"{name}.{_WEIGHTS}"])

    def copy_from_first(self, ranks: Ranks, restored: Mapping[str, Tensor]) -> None:
        """Give all ranks the weights and moments of rank 0.

        Args:
            ranks: all of them.
            restored: the state tensors that rank 0 has restored, without their values.
        """
        if not ranks.is_first and restored:
            device = self.model.output_weight.device
            self.restore({n: torch.empty_like(t, device=device) for n, t in restored.items()})
        ranks.copy_from_first(self.published.state_dict().values())
        ranks.copy_from_first(self.state_tensors().values())


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
