"""Sums over the updates between two progress reports, and the record they become."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from nmtkit.config.schema import TrainingConfig
from nmtkit.progress import TrainingRecord
from nmtkit.training.loss import Losses, perplexity
from nmtkit.training.state import RunState


@dataclass
class UpdateSums:
    """What one update adds up: token counts, and loss sums that stay on the device."""

    epoch: int
    num_source_tokens: int
    num_target_tokens: int
    smoothed: Tensor | float = 0.0
    nll: Tensor | float = 0.0
    gradient_norm: float = 0.0

    def add(self, losses: Losses) -> None:
        """Add a slot's losses."""
        self.smoothed = self.smoothed + losses.smoothed.detach()
        self.nll = self.nll + losses.nll


class Meter:
    """Collects updates until they are reported."""

    def __init__(self, config: TrainingConfig, state: RunState) -> None:
        self.config = config
        self._start = time.monotonic()
        self._start_update = state.update
        self.clear()

    def add(self, sums: UpdateSums) -> None:
        """Count one update."""
        self._updates.append(sums)

    @property
    def num_updates(self) -> int:
        """Updates since the last report."""
        return len(self._updates)

    @property
    def seconds(self) -> float:
        """Time spent on them, and a little more than 0."""
        return max(time.monotonic() - self._since, 1e-9)

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Leave the time of the block, which is not spent on updates, out of the rates."""
        start = time.monotonic()
        yield
        self._since += time.monotonic() - start
        self._start += time.monotonic() - start

    def record(self, state: RunState, learning_rate: float) -> TrainingRecord:
        """Summarise the updates since the last report, at least one."""
        updates, elapsed = self._updates, self.seconds
        num_target = sum(u.num_target_tokens for u in updates)
        num_source = sum(u.num_source_tokens for u in updates)
        nll = float(sum(u.nll for u in updates)) / num_target
        return TrainingRecord(
            update=state.update,
            epoch=updates[-1].epoch,
            loss=float(sum(u.smoothed for u in updates)) / num_target,
            nll=nll,
            perplexity=perplexity(nll),
            learning_rate=learning_rate,
            gradient_norm=updates[-1].gradient_norm,
            tokens_per_second=(num_source + num_target) / elapsed,
            updates_per_second=len(updates) / elapsed,
            num_source_tokens=num_source,
            num_target_tokens=num_target,
            skipped_updates=state.num_skipped,
            eta_s=self._remaining_s(state),
            elapsed_s=state.seconds,
        )

    def clear(self) -> None:
        """Forget the updates that were reported."""
        self._updates: list[UpdateSums] = []
        self._since = time.monotonic()

    def _remaining_s(self, state: RunState) -> float:
        """Estimate the time until the run's last update or its last minute, whichever is first."""
        rate = (state.update - self._start_update) / (time.monotonic() - self._start)
        by_updates = (self.config.max_updates - state.update) / rate
        limit_s = self.config.max_minutes * 60
        remaining = min(by_updates, limit_s - state.seconds) if limit_s else by_updates
        return max(remaining, 0.0)
