"""The meter: statistics and cost of the updates between two progress records.

Cost is the operations that are counted from the model's shape.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.config.metrics import NLL
from nmtkit.config.training import TrainingConfig
from nmtkit.data.sampler import Update
from nmtkit.model.cost import Workload
from nmtkit.progress.records import TrainingRecord
from nmtkit.training.objective import GUIDED_ALIGNMENT, LOSSES
from nmtkit.training.state import Progress
from nmtkit.units import SECONDS_PER_MINUTE, perplexity

LOSS = "loss"
"""The objective, in sums with `LOSSES`."""

_NORM = "gradient norm"
"""The last one of the results of an update."""

_SHORTEST_S = 1e-9
"""Times are at least this long, as rates divide by them."""


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of an update; the same on every rank.

    Attributes:
        number: its number.
        update: its pairs, as the dataset stores them.
        epoch: number of the epoch, from 1.
        seconds: time of training of the run after it, by the clock of rank 0.
        num_source_tokens: source tokens of all ranks, end symbols included.
        counts: units of each of `LOSSES` over all ranks.
        sums: (1 + losses,) float64, on the device: the objective and each of `LOSSES`, summed over
            all ranks, in nats.
        gradient_norm: (), on the device: norm of the gradients per target token before clipping.
    """

    number: int
    update: Update
    epoch: int
    seconds: float
    num_source_tokens: int
    counts: Mapping[str, int]
    sums: Tensor
    gradient_norm: Tensor

    @property
    def num_target_tokens(self) -> int:
        """Target tokens of all ranks, end symbols included."""
        return self.counts[NLL]


class Meter:
    """Sums up updates until they are reported, and measures the time of training."""

    def __init__(
        self,
        config: TrainingConfig,
        progress: Progress,
        epoch_pairs: float,
        num_ranks: int,
        peak_memory: Callable[[], int],
        count_operations: Callable[[Workload], float],
        clock: Callable[[], float],
    ) -> None:
        """Start the clock.

        Args:
            config: settings with the size of updates and the end of training.
            progress: progress of the run.
            epoch_pairs: pairs per epoch, on average.
            num_ranks: number of processes.
            peak_memory: returns the peak memory use so far, in bytes.
            count_operations: returns the floating-point operations of an update.
            clock: seconds from an arbitrary start, never going back.
        """
        self.config = config
        self.epoch_pairs = epoch_pairs
        self.num_ranks = num_ranks
        self.peak_memory = peak_memory
        self._count_operations = count_operations
        self._clock = clock
        self._start = clock()
        self._start_update = progress.update
        self._num_pairs = 0
        self.clear()

    def add(self, stats: UpdateStats) -> None:
        """Add an update, whose results the device may still compute."""
        self._updates.append(stats)
        self._num_pairs += len(stats.update.pairs)

    def read(self) -> list[tuple[UpdateStats, float]]:
        """Read the results of the updates since the last call; this waits for the device.

        Returns:
            The updates, each with the norm of its gradients.
        """
        unread = self._updates[len(self._results) :]
        if unread:
            results = [
                torch.cat((one.sums, one.gradient_norm.to(one.sums)[None])) for one in unread
            ]
            self._results += torch.stack(results).tolist()
        return [(one, self._results[place - len(unread)][-1]) for place, one in enumerate(unread)]

    @property
    def num_updates(self) -> int:
        """Number of updates since the last report."""
        return len(self._updates)

    @property
    def seconds(self) -> float:
        """Time of training since the meter was made, in seconds."""
        return self._clock() - self._start

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Exclude the time of the context from the time of training, the rates and the ETA."""
        start = self._clock()
        yield
        self._since += self._clock() - start
        self._start += self._clock() - start

    def record(self, progress: Progress, learning_rate: float) -> TrainingRecord:
        """Return the record of the updates since the last report, at least one, which are read."""
        updates, elapsed = self._updates, max(self._clock() - self._since, _SHORTEST_S)
        names = (LOSS, *LOSSES, _NORM)
        sums = dict(zip(names, map(sum, zip(*self._results, strict=True)), strict=True))
        counts = {name: sum(one.counts[name] for one in updates) for name in LOSSES}
        num_source, num_target = sum(one.num_source_tokens for one in updates), counts[NLL]
        num_planned = sum(
            one.update.num_source_tokens + one.update.num_target_tokens for one in updates
        )
        nll = sums[NLL] / num_target
        return TrainingRecord(
            update=progress.update,
            epoch=updates[-1].epoch,
            loss=sums[LOSS] / num_target,
            nll=nll,
            perplexity=perplexity(nll),
            alignment_loss=(
                sums[GUIDED_ALIGNMENT] / num_target if self.config.guided_alignment_weight else None
            ),
            learning_rate=learning_rate,
            gradient_norm=self._results[-1][-1],
            tokens_per_second=(num_source + num_target) / elapsed,
            updates_per_second=len(updates) / elapsed,
            num_source_tokens=num_source,
            num_target_tokens=num_target,
            fill=num_planned / (2 * self.config.update_tokens * len(updates)),
            peak_memory=self.peak_memory(),
            ranks=self.num_ranks,
            skipped_updates=progress.num_skipped,
            eta_s=self._remaining_s(progress),
            elapsed_s=progress.seconds,
            operations=sum(self._count_operations(_work_of(one)) for one in updates),
        )

    def clear(self) -> None:
        """Start the next report."""
        self._updates: list[UpdateStats] = []
        self._results: list[list[float]] = []
        self._since = self._clock()

    def _remaining_s(self, progress: Progress) -> float:
        """Estimate the seconds until the last update, epoch or minute, whichever is first."""
        config = self.config
        seen_updates = progress.update - self._start_update
        rate = seen_updates / max(self.seconds, _SHORTEST_S)
        last_update: float = config.max_updates
        if config.max_epochs:
            updates_an_epoch = self.epoch_pairs * seen_updates / self._num_pairs
            last_update = min(last_update, config.max_epochs * updates_an_epoch)
        remaining = (last_update - progress.update) / rate
        if config.max_minutes:
            remaining = min(remaining, config.max_minutes * SECONDS_PER_MINUTE - progress.seconds)
        return max(remaining, 0.0)


def _work_of(stats: UpdateStats) -> Workload:
    """Return the work of an update, whose pairs have similar lengths, by their mean length."""
    source, target = stats.num_source_tokens, stats.num_target_tokens
    num_pairs = len(stats.update.pairs)
    return Workload(source, target, source / num_pairs, target / num_pairs)
