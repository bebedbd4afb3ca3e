"""Reading ahead: while a device computes, the batches that it needs next are prepared.

What is read when follows from the run alone, never from how far ahead it is read, nor from who
reads: a thread of this process, or other processes whose slots that thread collects. The thread
also sends batches to the device. On a CPU, where whatever reads takes time from what computes,
nothing is read ahead unless processes are asked for.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch, batch_of
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Update
from nmtkit.runtime import background_thread
from nmtkit.training.distributed import Ranks
from nmtkit.training.segmentation import Segmentation
from nmtkit.training.shares import Assignment, Shares, SlotIds, SlotStream, Start, slots_by_workers
from nmtkit.training.slots import Cut, Slot

NUM_AHEAD = 2
"""Batches that wait for the device at most."""

MOST_WORKERS = 4
"""Processes that are started at most, unless more are asked for."""


@dataclass(frozen=True)
class Reading:
    """An update as a rank reads it.

    Attributes:
        update: its pairs.
        number: which one it is, from 1.
        position: the one after it.
        slots: of this rank, each with its batch; to be taken once, before the next update is read.
    """

    update: Update
    number: int
    position: Position
    slots: Iterator[tuple[Slot, Batch]]


class Reader:
    """Reads one update after another; what is asked for next is there already, as a rule."""

    def __init__(
        self, open_slots: Callable[[Start], SlotStream], device: torch.device, num_ahead: int
    ) -> None:
        """Store what is read.

        Args:
            open_slots: returns all that comes from a place on.
            device: where batches go.
            num_ahead: batches that are prepared ahead by a thread; 0 = none, and no thread.
        """
        self._open_slots = open_slots
        self._device = device
        self._num_ahead = num_ahead
        self._stream: SlotStream | None = None
        self._thread: Executor | None = None
        self._prepared: deque[Future[tuple[SlotIds, Batch]]] = deque()
        self._following: Start | None = None

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset, ranks: Ranks, device: torch.device) -> "Reader":
        """Return what a rank of a run reads by."""
        shares = Shares.of(recipe, dataset, ranks.rank, ranks.size)
        num_workers = recipe.engine.read_workers or useful_workers(shares.segmentation, device)
        num_ahead = NUM_AHEAD if num_workers or device.type == "cuda" else 0
        if not num_workers:
            return Reader(shares.slots, device, num_ahead)

        def open_slots(start: Start) -> SlotStream:
            task = Assignment(dataset.folder, recipe, ranks.rank, ranks.size, 0, num_workers, start)
            return slots_by_workers(lambda number: replace(task, worker=number), num_workers)

        return Reader(open_slots, device, num_ahead)

    def read(self, position: Position, number: int, cut: Cut) -> Reading:
        """Read an update.

        Args:
            position: where it is found.
            number: which one it is, from 1.
            cut: how it is divided.

        Raises:
            DamagedError: what is read was not what was written.
            ResourceError: a process that reads was killed.
            MemoryError, RuntimeError: out of memory.
            OSError: the system refuses to read.
        """
        start = Start(position, number, cut)
        if start != self._following:
            self._begin(start)
        self._following = None  # until all of this update is taken
        first, batch = self._take()
        return Reading(first.update, number, first.position, self._slots(first, batch, start))

    def close(self) -> None:
        """Stop reading ahead; what reads has ended when this returns."""
        self._following = None
        self._prepared.clear()
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _slots(self, ids: SlotIds, batch: Batch, start: Start) -> Iterator[tuple[Slot, Batch]]:
        while not ids.slot.is_last:
            yield ids.slot, batch
            ids, batch = self._take()
        self._following = Start(ids.position, start.number + 1, start.cut)
        yield ids.slot, batch

    def _begin(self, start: Start) -> None:
        self.close()
        self._stream = self._open_slots(start)
        if self._num_ahead:
            self._thread = background_thread("reader")
            for _ in range(self._num_ahead):
                self._prepared.append(self._thread.submit(self._prepare))

    def _take(self) -> tuple[SlotIds, Batch]:
        if self._thread is None:
            return self._prepare()
        first = self._prepared.popleft()
        self._prepared.append(self._thread.submit(self._prepare))
        return first.result()

    def _prepare(self) -> tuple[SlotIds, Batch]:
        assert self._stream is not None, "nothing is being read"
        ids = next(self._stream)
        return ids, batch_of(ids.source, ids.target, self._device)


def useful_workers(segmentation: Segmentation, device: torch.device) -> int:
    """Return how many processes a rank has read for it, unless it is told; 0 = none.

    To cut text anew takes longer than a GPU computes; and as it is Python's work throughout, a
    thread would keep the one that has the GPU compute from going on.
    """
    if device.type != "cuda" or not segmentation.is_anew:
        return 0
    cores = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return min(max(cores - 1, 1), MOST_WORKERS)
