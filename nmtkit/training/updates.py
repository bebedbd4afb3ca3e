"""Updates in order, from the dataset to the batches of a rank.

`UpdateReader` reads the ids of a rank's micro-batches, in this process or in workers. The
`UpdateLoader` makes batches of them on the device, ahead of it if asked for. All follow from where
reading begins: not from the number of processes that read, nor from reading ahead.

On a GPU, a background thread prepares updates ahead and copies them to the device. On a CPU nothing
is read ahead unless `--read-workers` asks for processes: reading would take time from computing.

This module does not import torch, so worker processes start without it.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset, PairIds, Pairs
from nmtkit.data.sampler import Position, Sampler, Update, with_temperature
from nmtkit.runtime.environment import num_local_ranks
from nmtkit.runtime.workers import Worker, ended_early
from nmtkit.training.micro_batches import micro_batches_of_rank, pairs_of
from nmtkit.training.text_hook import TrainingText

if TYPE_CHECKING:
    from nmtkit.data.batch import Batch

NUM_AHEAD = 2
"""Number of updates prepared ahead of the device."""

MAX_USEFUL_WORKERS = 4
"""Largest number of worker processes per rank, unless --read-workers sets it."""

Form = TypeVar("Form")


@dataclass(frozen=True)
class Start:
    """Where reading begins.

    Attributes:
        position: position of the first update in the data.
        number: number of that update, from 1.
        num_micro_batches: M, micro-batches per update, of all ranks together.
    """

    position: Position
    number: int
    num_micro_batches: int


@dataclass(frozen=True)
class LoadedUpdate(Generic[Form]):
    """An update with the micro-batches of one rank.

    Attributes:
        update: its pairs, those of other ranks included.
        following: the start of the next update.
        micro_batches: by number, from 0, which seeds the dropout: ids as they are read, or batches
            on the device. Empty on some ranks if the update has fewer pairs than there are ranks.
    """

    update: Update
    following: Start
    micro_batches: dict[int, Form]


UpdateStream = Generator[LoadedUpdate[PairIds], None, None]
"""Updates in order, without end; closed when no more are needed."""


@dataclass(frozen=True)
class UpdateReader:
    """Reads the micro-batches of one rank.

    Attributes:
        shards: the training pairs.
        sampler: chooses the pairs of each update.
        text: changes their text and segmentation.
        rank, num_ranks: number of the rank, and W.
    """

    shards: Sequence[Pairs]
    sampler: Sampler
    text: TrainingText
    rank: int
    num_ranks: int

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset, rank: int, num_ranks: int) -> "UpdateReader":
        """Return the reader of a rank for a dataset and a recipe."""
        return UpdateReader(
            shards=dataset.train,
            sampler=Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed),
            text=TrainingText.of(recipe, dataset),
            rank=rank,
            num_ranks=num_ranks,
        )

    def updates(self, start: Start, first: int = 0, step: int = 1) -> UpdateStream:
        """Read every `step`-th update from a start on, beginning with index `first`."""
        planned = enumerate(self.sampler.updates(start.position), start.number)
        for number, (position, update) in islice(planned, first, None, step):
            following = Start(position, number + 1, start.num_micro_batches)
            micro_batches = self._read(update, number, start.num_micro_batches)
            yield LoadedUpdate(update, following, micro_batches)

    def _read(self, update: Update, number: int, num_micro_batches: int) -> dict[int, PairIds]:
        shard = self.shards[update.shard]
        lines = self.text.draw(shard, update.pairs, number)
        places = np.arange(len(lines))
        own = micro_batches_of_rank(len(lines), num_micro_batches, self.rank, self.num_ranks)
        parts = {j: lines.at(pairs_of(places, j, num_micro_batches)) for j in own}
        return {j: self.text.read(shard, part, number) for j, part in parts.items()}


class UpdateLoader:
    """Loads updates one after another, ahead of the device if asked for."""

    def __init__(
        self,
        open_stream: Callable[[Start], UpdateStream],
        make_batch: Callable[[PairIds], "Batch"],
        background: Executor | None,
    ) -> None:
        """Store the parts.

        Args:
            open_stream: returns the updates from a start on.
            make_batch: makes a batch on the device.
            background: a thread that prepares `NUM_AHEAD` updates ahead; None = no thread.
        """
        self._open_stream = open_stream
        self._make_batch = make_batch
        self._background = background
        self._stream: UpdateStream | None = None
        self._prepared: deque[Future[LoadedUpdate[Batch]]] = deque()
        self._expected: Start | None = None

    def load(self, start: Start) -> "LoadedUpdate[Batch]":
        """Load the update at a start.

        Raises:
            DamagedError: the dataset has changed since it was written.
            ResourceError: a worker process was killed.
            MemoryError, RuntimeError: out of memory.
            OSError: the system cannot read the dataset.
        """
        if start != self._expected:
            self._restart(start)
        self._expected = None  # so an update that fails to load is read again
        if self._background is None:
            loaded = self._prepare()
        else:
            self._prepared.append(self._background.submit(self._prepare))
            loaded = self._prepared.popleft().result()
        self._expected = loaded.following
        return loaded

    def close(self) -> None:
        """Stop reading, and wait until the thread and the workers have ended."""
        self._stop()
        if self._background is not None:
            self._background.shutdown()

    def _restart(self, start: Start) -> None:
        self._stop()
        self._stream = self._open_stream(start)
        if self._background is not None:
            submit = self._background.submit
            self._prepared.extend(submit(self._prepare) for _ in range(NUM_AHEAD))

    def _stop(self) -> None:
        wait([one for one in self._prepared if not one.cancel()])
        self._prepared.clear()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _prepare(self) -> "LoadedUpdate[Batch]":
        assert self._stream is not None, "the loader is closed"
        read = next(self._stream)
        batches = {j: self._make_batch(ids) for j, ids in read.micro_batches.items()}
        return LoadedUpdate(read.update, read.following, batches)


@dataclass(frozen=True)
class _Assignment:
    """Work of a worker process: every `num_workers`-th update from a start on.

    Attributes:
        folder: folder of the dataset.
        recipe: all settings.
        rank, num_ranks: see `UpdateReader`.
        start: where reading begins.
        worker, num_workers: number of the worker, and workers per rank.
    """

    folder: Path
    recipe: TrainRecipe
    rank: int
    num_ranks: int
    start: Start
    worker: int
    num_workers: int


def open_updates(
    recipe: TrainRecipe, dataset: Dataset, rank: int, num_ranks: int, device_type: str
) -> tuple[Callable[[Start], UpdateStream], bool]:
    """Return a function that opens the updates of a rank, and whether to prepare them ahead.

    They are read by --read-workers or by the default number of processes.

    Args:
        recipe: all settings.
        dataset: the dataset.
        rank, num_ranks: see `UpdateReader`.
        device_type: type of the device that computes them, "cpu" or "cuda".

    Raises:
        ConfigError: noise or subword sampling does not fit the dataset.
    """
    reader = UpdateReader.of(recipe, dataset, rank, num_ranks)
    num_workers = recipe.engine.read_workers
    if reader.text.is_active and device_type == "cuda":
        num_workers = num_workers or default_num_workers()
    if not num_workers:
        return reader.updates, device_type == "cuda"

    def open_stream(start: Start) -> UpdateStream:
        task = _Assignment(dataset.folder, recipe, rank, num_ranks, start, 0, num_workers)
        return _updates_by_workers(task)

    return open_stream, True


def default_num_workers() -> int:
    """Return the number of worker processes per rank on a GPU if the recipe does not set it.

    Noise and subword sampling take longer than the computation on a GPU. They run in Python, so a
    thread would hold the GIL, which the computing thread needs.
    """
    cores = len(os.sched_getaffinity(0)) // num_local_ranks()
    return min(max(cores - 1, 1), MAX_USEFUL_WORKERS)


def _updates_by_workers(task: _Assignment) -> UpdateStream:
    """Read updates in worker processes, each at most two updates ahead.

    Args:
        task: that of the first worker.

    Raises:
        ResourceError: a worker was killed.
        NmtkitError, MemoryError, OSError: a worker raised it.
    """
    workers: list[Worker[LoadedUpdate[PairIds]]] = []
    try:
        for number in range(task.num_workers):
            workers.append(Worker(_serve, ended_early("take fewer --read-workers")))
            workers[-1].send(replace(task, worker=number))
        while True:
            for worker in workers:
                yield worker.receive()
    finally:
        for worker in workers:
            worker.end()


def _serve(connection: "Connection[LoadedUpdate[PairIds], Any]") -> None:
    """Receive an assignment, and send the updates that it asks for."""
    task: _Assignment = connection.recv()
    temperature = task.recipe.training.sampling_temperature
    dataset = with_temperature(Dataset.open(task.folder), temperature)
    reader = UpdateReader.of(task.recipe, dataset, task.rank, task.num_ranks)
    for update in reader.updates(task.start, task.worker, task.num_workers):
        connection.send(update)
