"""What training changes: a model's weights, their moving average, Adam's moments."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from nmtkit.config.training import TrainingConfig
from nmtkit.model.transformer import Transformer
from nmtkit.training.distributed import Ranks
from nmtkit.training.optimizer import make_adam, optimizer_tensors, restore_optimizer

_WEIGHTS = "weights"
"""Beside Adam's moments, a moving average makes the weights themselves part of the state."""


class MovingAverage:
    """The exponential moving average of a model's weights, as a model of its own.

    Source: Polyak and Juditsky 1992; the shorter memory of the first updates, (1 + n) / (10 + n)
    after n, is that of Abadi et al. 2016, tf.train.ExponentialMovingAverage.
    """

    def __init__(self, model: Transformer, decay: float) -> None:
        """Begin with a model's weights; `decay` of the average stays in every update."""
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self._decay = decay

    def add(self, model: Transformer, update: int) -> None:
        """Take in the weights after an update."""
        decay = min(self._decay, (1 + update) / (10 + update))
        average = get_ema_multi_avg_fn(decay)
        average(list(self.model.parameters()), list(model.parameters()), 0)


@dataclass(frozen=True)
class Learner:
    """A model that is trained, with what training needs beside it.

    Attributes:
        model: the weights that the next update changes.
        optimizer: their moments.
        average: their moving average, where it is asked for.
    """

    model: Transformer
    optimizer: torch.optim.Adam
    average: MovingAverage | None

    @staticmethod
    def of(model: Transformer, config: TrainingConfig) -> "Learner":
        """Return a learner before its first update."""
        decay = config.average_decay
        average = MovingAverage(model, decay) if decay else None
        return Learner(model, make_adam(model, config), average)

    @property
    def published(self) -> Transformer:
        """The model that is validated, saved and translated with."""
        return self.average.model if self.average else self.model

    def state_tensors(self) -> dict[str, Tensor]:
        """Return what is to be saved beside the published model, named "<parameter>.<what>"."""
        tensors = optimizer_tensors(self.optimizer, self.model)
        if self.average:
            for name, parameter in self.model.named_parameters():
                tensors[f"{name}.{_WEIGHTS}"] = parameter.detach()
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `state_tensors` returned, the published model being restored already."""
        moments = {name: t for name, t in tensors.items() if _kind(name) != _WEIGHTS}
        restore_optimizer(self.optimizer, self.model, moments)
        if self.average:
            for name, parameter in self.model.named_parameters():
                parameter.data.copy_(tensors[f"{name}.{_WEIGHTS}"])

    def copy_from_first(self, ranks: Ranks, restored: Mapping[str, Tensor]) -> None:
        """Have all ranks take over what rank 0 has restored.

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
