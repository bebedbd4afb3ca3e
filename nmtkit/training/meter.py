"""The meter: statistics and cost of the updates between two progress records.

Cost is given twice: operations counted from the model's shape, and time x devices x rate, as the
paper counts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from nmtkit.config.training import ModelConfig, TrainingConfig
from nmtkit.data.sampler import Update
from nmtkit.model.estimate.cost import Workload, training_operations
from nmtkit.model.estimate.device_rates import sustained_rate
from nmtkit.progress.records import TrainingRecord
from nmtkit.runtime.devices import device_name
from nmtkit.runtime.host_copies import HostCopy
from nmtkit.training.state import Progress
from nmtkit.units import SECONDS_PER_MINUTE, perplexity


@dataclass(frozen=True)
class UpdateSize:
    """The size of an update, known before it is computed; the same on every rank.

    Attributes:
        num_pairs: number of sentence pairs.
        num_source_tokens, num_target_tokens: tokens of all ranks, end symbols included.
        num_planned_tokens: source and target tokens as the dataset stores them.
        epoch: number of the epoch, from 1.
    """

    num_pairs: int
    num_source_tokens: int
    num_target_tokens: int
    num_planned_tokens: int
    epoch: int


@dataclass(frozen=True)
class UpdateResult:
    """The sums that the devices compute in an update; the same on every rank.

    Attributes:
        loss, nll: sums over target tokens, in nats: the training objective, and without smoothing.
        gradient_norm: norm of the gradients of the mean loss per target token, before clipping.
    """

    loss: float
    nll: float
    gradient_norm: float


@dataclass(frozen=True)
class RunningUpdate:
    """An update that is computed; the host has not read its results yet.

    Attributes:
        number: its number.
        pairs: its pairs, those of other ranks included.
        size: its size.
        result: loss, nll and gradient norm, as in `UpdateResult`.
    """

    number: int
    pairs: Update
    size: UpdateSize
    result: HostCopy


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

    def counted(self, updates: Sequence[UpdateSize]) -> float:
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
        progress: Progress,
        epoch_pairs: float,
        num_ranks: int,
        peak_memory: Callable[[], int],
        costs: Costs,
        clock: Callable[[], float],
    ) -> None:
        """Start the clock.

        Args:
            config: settings with the size of updates and the end of training.
            progress: progress of the run.
            epoch_pairs: pairs per epoch, on average.
            num_ranks: number of processes.
            peak_memory: returns the peak memory use so far, in bytes.
            costs: counts the cost of updates.
            clock: seconds from an arbitrary start, never going back.
        """
        self.config = config
        self.epoch_pairs = epoch_pairs
        self.num_ranks = num_ranks
        self.peak_memory = peak_memory
        self.costs = costs
        self._clock = clock
        self._start = clock()
        self._start_update = progress.update
        self._seen_pairs = 0
        self.clear(progress)

    def add(self, size: UpdateSize, result: UpdateResult) -> None:
        """Add an update."""
        self._sizes.append(size)
        self._results.append(result)
        self._seen_pairs += size.num_pairs

    @property
    def num_updates(self) -> int:
        """Number of updates since the last report."""
        return len(self._sizes)

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

    def record(self, progress: Progress, learning_rate: float) -> TrainingRecord:
        """Return the record of the updates since the last report, at least one."""
        sizes, results, elapsed = self._sizes, self._results, self.seconds
        num_target = sum(size.num_target_tokens for size in sizes)
        num_source = sum(size.num_source_tokens for size in sizes)
        num_planned = sum(size.num_planned_tokens for size in sizes)
        nll = sum(result.nll for result in results) / num_target
        device_seconds = (progress.seconds - self._seconds_before) * self.num_ranks
        return TrainingRecord(
            update=progress.update,
            epoch=sizes[-1].epoch,
            loss=sum(result.loss for result in results) / num_target,
            nll=nll,
            perplexity=perplexity(nll),
            learning_rate=learning_rate,
            gradient_norm=results[-1].gradient_norm,
            tokens_per_second=(num_source + num_target) / elapsed,
            updates_per_second=len(sizes) / elapsed,
            num_source_tokens=num_source,
            num_target_tokens=num_target,
            fill=num_planned / (2 * self.config.update_tokens * len(sizes)),
            peak_memory=self.peak_memory(),
            ranks=self.num_ranks,
            skipped_updates=progress.num_skipped,
            eta_s=self._remaining_s(progress),
            elapsed_s=progress.seconds,
            operations=self.costs.counted(sizes),
            paper_operations=self.costs.by_time(device_seconds),
        )

    def clear(self, progress: Progress) -> None:
        """Start the next report."""
        self._seconds_before = progress.seconds
        self._sizes: list[UpdateSize] = []
        self._results: list[UpdateResult] = []
        self._since = self._clock()

    def _remaining_s(self, progress: Progress) -> float:
        """Estimate the seconds until the last update, epoch or minute, whichever is first."""
        config = self.config
        seen_updates = progress.update - self._start_update
        rate = seen_updates / max(self._clock() - self._start, 1e-9)
        last_update: float = config.max_updates
        if config.max_epochs:
            updates_an_epoch = self.epoch_pairs * seen_updates / self._seen_pairs
            last_update = min(last_update, config.max_epochs * updates_an_epoch)
        remaining = (last_update - progress.update) / rate
        if config.max_minutes:
            remaining = min(remaining, config.max_minutes * SECONDS_PER_MINUTE - progress.seconds)
        return max(remaining, 0.0)


def device_rate(device: torch.device, low_precision: torch.dtype | None) -> float | None:
    """Return the sustained operations per second of a device; None if unknown.

    Args:
        device: device of the matrix products.
        low_precision: type of the matrix products; None = float32.
    """
    precision = str(low_precision or torch.float32).removeprefix("torch.")
    return sustained_rate(device_name(device), precision)


def _work_of(update: UpdateSize) -> Workload:
    source, target = update.num_source_tokens, update.num_target_tokens
    return Workload(source, target, source / update.num_pairs, target / update.num_pairs)
