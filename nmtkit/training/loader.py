"""The loader: batches of updates, on the device that computes them.

The batches of a run do not depend on the number of processes that read, or on reading ahead. For a
GPU, a background thread prepares updates ahead and copies them to the device. On a CPU nothing is
read ahead unless `--read-workers` asks for processes: reading would take time from computing.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch, make_batch
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Update
from nmtkit.runtime.parent_process import num_local_ranks
from nmtkit.runtime.threads import background_thread
from nmtkit.training.distributed import Ranks
from nmtkit.training.micro_batches import MicroBatch
from nmtkit.training.update_reader import (
    Assignment,
    UpdateReader,
    UpdateStream,
    updates_by_workers,
)

NUM_AHEAD = 2
"""Number of updates prepared ahead of the device."""

MAX_USEFUL_WORKERS = 4
"""Largest number of worker processes per rank, unless --read-workers sets it."""


OpenStream = Callable[[Position, int, int], UpdateStream]
"""(position, number of the first update, micro-batches) -> updates; see `UpdateReader.updates`."""


@dataclass(frozen=True)
class LoadedUpdate:
    """An update with the batches of one rank.

    Attributes:
        update: pairs of the update, those of other ranks included.
        next_position: position of the next update in the data.
        micro_batches: micro-batches of this rank, at least one.
    """

    update: Update
    next_position: Position
    micro_batches: list[MicroBatch[Batch]]

    @property
    def num_tokens(self) -> tuple[int, int]:
        """Source and target tokens of this rank, without micro-batches of weight 0."""
        sizes = [
            (m.weight * x, m.weight * y) for m in self.micro_batches for x, y in [m.pairs.sizes]
        ]
        return sum(x for x, _ in sizes), sum(y for _, y in sizes)


class BatchLoader:
    """Loads updates one after another, ahead of the device if asked for."""

    def __init__(
        self,
        open_stream: OpenStream,
        device: torch.device,
        num_ahead: int,
    ) -> None:
        """Store the parts.

        Args:
            open_stream: returns a stream of ids of the updates from a position on.
            device: device of the batches.
            num_ahead: updates that a background thread prepares ahead; 0 = no thread.
        """
        self._open_stream = open_stream
        self._device = device
        self._num_ahead = num_ahead
        self._stream: UpdateStream | None = None
        self._thread: Executor | None = None
        self._prepared: deque[Future[LoadedUpdate]] = deque()
        self._expected: tuple[Position, int, int] | None = None

    @staticmethod
    def of(
        recipe: TrainRecipe, dataset: Dataset, ranks: Ranks, device: torch.device
    ) -> "BatchLoader":
        """Return the loader of a rank, with the workers of --read-workers or the default number."""
        reader = UpdateReader.of(recipe, dataset, ranks.rank, ranks.size)
        num_workers = recipe.engine.read_workers or default_num_workers(
            device, reader.segments_text
        )
        num_ahead = NUM_AHEAD if num_workers or device.type == "cuda" else 0
        if not num_workers:
            return BatchLoader(reader.updates, device, num_ahead)

        def open_stream(position: Position, number: int, num_micro_batches: int) -> UpdateStream:
            task = Assignment(
                folder=dataset.folder,
                recipe=recipe,
                rank=ranks.rank,
                num_ranks=ranks.size,
                worker=0,
                num_workers=num_workers,
                position=position,
                number=number,
                num_micro_batches=num_micro_batches,
            )
            return updates_by_workers(lambda number: replace(task, worker=number), num_workers)

        return BatchLoader(open_stream, device, num_ahead)

    def load(self, position: Position, number: int, num_micro_batches: int) -> LoadedUpdate:
        """Load an update.

        Args:
            position: its position in the data.
            number: number of the update, from 1.
            num_micro_batches: M, micro-batches of the update, on all ranks.

        Raises:
            DamagedError: the dataset has changed since it was written.
            ResourceError: a worker process was killed.
            MemoryError, RuntimeError: out of memory.
            OSError: the system cannot read the dataset.
        """
        if (position, number, num_micro_batches) != self._expected:
            self._restart(position, number, num_micro_batches)
        self._expected = None  # so an update that fails to load is read again
        loaded = self._next()
        self._expected = (loaded.next_position, number + 1, num_micro_batches)
        return loaded

    def close(self) -> None:
        """Stop reading ahead, and wait until the thread and the workers have ended."""
        self._expected = None
        self._prepared.clear()
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _restart(self, position: Position, number: int, num_micro_batches: int) -> None:
        self.close()
        self._stream = self._open_stream(position, number, num_micro_batches)
        if self._num_ahead:
            self._thread = background_thread("loader")
            for _ in range(self._num_ahead):
                self._prepared.append(self._thread.submit(self._prepare))

    def _next(self) -> LoadedUpdate:
        if self._thread is None:
            return self._prepare()
        first = self._prepared.popleft()
        self._prepared.append(self._thread.submit(self._prepare))
        return first.result()

    def _prepare(self) -> LoadedUpdate:
        assert self._stream is not None, "the loader is closed"
        position, update, parts = next(self._stream)
        micro_batches = [
            MicroBatch(part.number, part.weight, make_batch(*part.pairs, self._device))
            for part in parts
        ]
        return LoadedUpdate(update, position, micro_batches)


def default_num_workers(device: torch.device, segments_text: bool) -> int:
    """Return the number of worker processes per rank if the recipe does not set it; 0 = none.

    Noise and subword sampling take longer than the computation on a GPU. They run in Python, so a
    thread would hold the GIL, which the computing thread needs.
    """
    if device.type != "cuda" or not segments_text:
        return 0
    cores = len(os.sched_getaffinity(0)) // num_local_ranks()
    return min(max(cores - 1, 1), MAX_USEFUL_WORKERS)
