"""The meter: statistics and cost of the updates between two progress records.

Cost is given twice: operations counted from the model's shape, and time x devices x rate, as the
paper counts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from nmtkit.config.training import ModelConfig, TrainingConfig
from nmtkit.model.estimate.cost import Workload, training_operations
from nmtkit.model.estimate.device_rates import sustained_rate
from nmtkit.model.likelihood import perplexity
from nmtkit.progress.records import TrainingRecord
from nmtkit.runtime.devices import device_name
from nmtkit.training.state import Progress
from nmtkit.units import SECONDS_PER_MINUTE


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of one update, the same on every rank.

    Attributes:
        loss, nll: sums over target tokens, in nats: the training objective, and without smoothing.
        num_pairs: number of sentence pairs.
        num_source_tokens, num_target_tokens: tokens of all ranks, end symbols included.
        num_planned_tokens: source and target tokens as the dataset stores them.
        epoch: number of the epoch, from 1.
        gradient_norm: norm of the gradients of the mean loss per target token, before clipping.
        elapsed_s: training time of the run so far, in seconds, by the clock of rank 0.
        is_stopped: a rank was asked to stop, so the update is not complete.
    """

    loss: float
    nll: float
    num_pairs: int
    num_source_tokens: int
    num_target_tokens: int
    num_planned_tokens: int
    epoch: int
    gradient_norm: float
    elapsed_s: float
    is_stopped: bool


@dataclass(frozen=True)
class Costs:
    """Counts the cost of updates.

    Attributes:
        model: shape of the model.
        target_size: V, number of entries in the target vocabulary.
        device_rate: sustained operations per second of a device, as the paper estimates them; None
            if unknown.
    """

    model: ModelConfig
    target_size: int
    device_rate: float | None

    def counted(self, updates: Sequence[UpdateStats]) -> float:
        """Return the number of floating-point operations of updates.

        The operations of attention grow with the square of the length. The pairs of one update
        have similar lengths, so each update is counted with its mean length.
        """
        return sum(
            training_operations(self.model, self.target_size, _work_of(update))
            for update in updates
        )

    def by_time(self, device_seconds: float) -> float | None:
        """Return time x devices x rate, the count of the paper; None if the rate is unknown."""
        return None if self.device_rate is None else device_seconds * self.device_rate


class Meter:
    """Sums up updates until they are reported."""

    def __init__(
        self,
        config: TrainingConfig,
        state: Progress,
        num_pairs: int,
        num_ranks: int,
        peak_memory: Callable[[], int],
        costs: Costs,
        clock: Callable[[], float],
    ) -> None:
        """Start the clock.

        Args:
            config: settings with the size of updates and the end of training.
            state: progress of the run.
            num_pairs: pairs per epoch.
            num_ranks: number of processes.
            peak_memory: returns the peak memory use so far, in bytes.
            costs: counts the cost of updates.
            clock: seconds from an arbitrary start, never going back.
        """
        self.config = config
        self.num_pairs = num_pairs
        self.num_ranks = num_ranks
        self.peak_memory = peak_memory
        self.costs = costs
        self._clock = clock
        self._start = clock()
        self._start_update = state.update
        self._seen_pairs = 0
        self.clear(state)

    def add(self, stats: UpdateStats) -> None:
        """Add an update."""
        self._updates.append(stats)
        self._seen_pairs += stats.num_pairs

    @property
    def num_updates(self) -> int:
        """Number of updates since the last report."""
        return len(self._updates)

    @property
    def seconds(self) -> float:
        """Time since the last report, in seconds, never 0."""
        return max(self._clock() - self._since, 1e-9)

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Exclude the time of the context from the rates and the ETA."""
        start = self._clock()
        yield
        self._since += self._clock() - start
        self._start += self._clock() - start

    def record(self, state: Progress, learning_rate: float) -> TrainingRecord:
        """Return the record of the updates since the last report, at least one."""
        updates, elapsed = self._updates, self.seconds
        num_target = sum(u.num_target_tokens for u in updates)
        num_source = sum(u.num_source_tokens for u in updates)
        num_planned = sum(u.num_planned_tokens for u in updates)
        nll = sum(u.nll for u in updates) / num_target
        device_seconds = (state.seconds - self._seconds_before) * self.num_ranks
        return TrainingRecord(
            update=state.update,
            epoch=updates[-1].epoch,
            loss=sum(u.loss for u in updates) / num_target,
            nll=nll,
            perplexity=perplexity(nll),
            learning_rate=learning_rate,
            gradient_norm=updates[-1].gradient_norm,
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
            operations=self.costs.counted(updates),
            paper_operations=self.costs.by_time(device_seconds),
        )

    def clear(self, state: Progress) -> None:
        """Start the next report."""
        self._seconds_before = state.seconds
        self._updates: list[UpdateStats] = []
        self._since = self._clock()

    def _remaining_s(self, state: Progress) -> float:
        """Estimate the seconds until the last update, epoch or minute, whichever is first."""
        config = self.config
        seen_updates = state.update - self._start_update
        rate = seen_updates / max(self._clock() - self._start, 1e-9)
        last_update: float = config.max_updates
        if config.max_epochs:
            updates_an_epoch = self.num_pairs * seen_updates / self._seen_pairs
            last_update = min(last_update, config.max_epochs * updates_an_epoch)
        remaining = (last_update - state.update) / rate
        if config.max_minutes:
            remaining = min(remaining, config.max_minutes * SECONDS_PER_MINUTE - state.seconds)
        return max(remaining, 0.0)


def device_rate(device: torch.device, low_precision: torch.dtype | None) -> float | None:
    """Return the sustained operations per second of a device; None if unknown.

    Args:
        device: device of the matrix products.
        low_precision: type of the matrix products; None = float32.
    """
    precision = str(low_precision or torch.float32).removeprefix("torch.")
    return sustained_rate(device_name(device), precision)


def _work_of(update: UpdateStats) -> Workload:
    source, target = update.num_source_tokens, update.num_target_tokens
    return Workload(source, target, source / update.num_pairs, target / update.num_pairs)
