"""Sums over the updates between two progress reports, and the record they become."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nmtkit.config.training import TrainingConfig
from nmtkit.data.sampler import Update
from nmtkit.model.likelihood import perplexity
from nmtkit.records import TrainingRecord
from nmtkit.training.costs import Costs
from nmtkit.training.state import RunState
from nmtkit.training.updating import Sums


@dataclass(frozen=True)
class Metered:
    """One update, as it is counted."""

    update: Update
    epoch: int
    sums: Sums


class Meter:
    """Collects updates until they are reported."""

    def __init__(
        self,
        config: TrainingConfig,
        state: RunState,
        num_pairs: int,
        num_ranks: int,
        peak_memory: Callable[[], int],
        costs: Costs,
    ) -> None:
        """Begin to measure.

        Args:
            config: how large updates are, and when training ends.
            state: where the run stands.
            num_pairs: of an epoch.
            num_ranks: W.
            peak_memory: tells the bytes needed so far at most.
            costs: what the cost of updates follows from.
        """
        self.config = config
        self.num_pairs = num_pairs
        self.num_ranks = num_ranks
        self.peak_memory = peak_memory
        self.costs = costs
        self._start = time.monotonic()
        self._start_update = state.update
        self._seen_pairs = 0
        self.clear(state)

    def add(self, update: Update, epoch: int, sums: Sums) -> None:
        """Count one update of an epoch, from 1."""
        self._updates.append(Metered(update, epoch, sums))
        self._seen_pairs += len(update.pairs)

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
        num_target = sum(u.sums.num_target_tokens for u in updates)
        num_source = sum(u.sums.num_source_tokens for u in updates)
        num_planned = sum(u.update.num_source_tokens + u.update.num_target_tokens for u in updates)
        nll = sum(u.sums.nll for u in updates) / num_target
        device_seconds = (state.seconds - self._seconds_before) * self.num_ranks
        return TrainingRecord(
            update=state.update,
            epoch=updates[-1].epoch,
            loss=sum(u.sums.smoothed for u in updates) / num_target,
            nll=nll,
            perplexity=perplexity(nll),
            learning_rate=learning_rate,
            gradient_norm=updates[-1].sums.gradient_norm,
            tokens_per_second=(num_source + num_target) / elapsed,
            updates_per_second=len(updates) / elapsed,
            num_source_tokens=num_source,
            num_target_tokens=num_target,
            fill=num_planned / (2 * self.config.update_tokens * len(updates)),
            peak_memory=self.peak_memory(),
            ranks=self.num_ranks,
            skipped_updates=state.num_skipped,
            eta_s=self._remaining_s(state),
            elapsed_s=state.seconds,
            operations=self.costs.counted([(u.update, u.sums) for u in updates]),
            paper_operations=self.costs.by_time(device_seconds),
        )

    def clear(self, state: RunState) -> None:
        """Forget the updates that were reported, up to where the run stands."""
        self._seconds_before = state.seconds
        self._updates: list[Metered] = []
        self._since = time.monotonic()

    def _remaining_s(self, state: RunState) -> float:
        """Estimate the time until the last update, epoch or minute, whichever is first."""
        config = self.config
        seen_updates = state.update - self._start_update
        rate = seen_updates / (time.monotonic() - self._start)
        last_update: float = config.max_updates
        if config.max_epochs:
            updates_an_epoch = self.num_pairs * seen_updates / self._seen_pairs
            last_update = min(last_update, config.max_epochs * updates_an_epoch)
        remaining = (last_update - state.update) / rate
        if config.max_minutes:
            remaining = min(remaining, config.max_minutes * 60 - state.seconds)
        return max(remaining, 0.0)
