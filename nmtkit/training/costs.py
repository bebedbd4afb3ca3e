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
        """Count the floating-point operations of some updates.

        Attention takes the square of a length. The pairs of an update are of similar lengths, so
        that their mean stands for each; updates differ in theirs.
        """
        return sum(
            training_operations(self.model, self.target_size, _work_of(*update))
            for update in updates
        )

    def by_time(self, device_seconds: float) -> float | None:
        """Count as the paper does: time x devices x rate; None without a rate."""
        return None if self.device_rate is None else device_seconds * self.device_rate


def device_rate(device: torch.device, low_precision: torch.dtype | None) -> float | None:
    """Return the operations a second that a device is taken to sustain; None if unknown.

    Args:
        device: where matrix products are computed.
        low_precision: their type; None = float32.
    """
    precision = str(low_precision or torch.float32).removeprefix("torch.")
    return sustained_rate(device_name(device), precision)


def _work_of(update: Update, sums: Sums) -> Work:
    source, target = sums.num_source_tokens, sums.num_target_tokens
    num_pairs = len(update.pairs)
    return Work(source, target, source / num_pairs, target / num_pairs)
