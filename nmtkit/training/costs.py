"""What updates cost, both ways: operations counted from the shape, and as the paper counts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nmtkit.config.training import ModelConfig
from nmtkit.data.sampler import Update
from nmtkit.devices import sustained_rate
from nmtkit.model.cost import Work, training_operations
from nmtkit.runtime import device_name
from nmtkit.training.updating import Sums


@dataclass(frozen=True)
class Costs:
    """What the cost of updates follows from.

    Attributes:
        model: the shape.
        target_size: V, entries of the target vocabulary.
        device_rate: operations a second that the paper would take a device to sustain; None where
            there is no figure.
    """

    model: ModelConfig
    target_size: int
    device_rate: float | None

    def counted(self, updates: Sequence[tuple[Update, Sums]]) -> float:
        """Count the floating-point operations of some updates, at least one."""
        return training_operations(self.model, self.target_size, work_of(updates))

    def by_time(self, device_seconds: float) -> float | None:
        """Count as the paper does: time x devices x rate; None without a rate."""
        return None if self.device_rate is None else device_seconds * self.device_rate


def work_of(updates: Sequence[tuple[Update, Sums]]) -> Work:
    """Return what passes through a model in some updates, at least one."""
    source = sum(sums.num_source_tokens for _, sums in updates)
    target = sum(sums.num_target_tokens for _, sums in updates)
    num_pairs = sum(len(update.pairs) for update, _ in updates)
    return Work(source, target, source / num_pairs, target / num_pairs)


def device_rate(device: torch.device, low_precision: torch.dtype | None) -> float | None:
    """Return the operations a second that a device is taken to sustain; None if unknown.

    Args:
        device: where matrix products are computed.
        low_precision: their type; None = float32.
    """
    precision = str(low_precision or torch.float32).removeprefix("torch.")
    return sustained_rate(device_name(device), precision)
