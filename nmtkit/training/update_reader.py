"""Ids of the updates' micro-batches, read from a dataset by this process or by workers.

Everything read follows from where reading begins. This module does not import torch, so worker
processes start without it; `loader.py` turns ids into batches.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset, Pairs, Sequences
from nmtkit.data.sampler import Position, Sampler, Update
from nmtkit.runtime.workers import Worker, ended_early
from nmtkit.training.micro_batches import MicroBatch, numbers_of_rank, pairs_of
from nmtkit.training.subword_sampling import SubwordSampling

_REMEDY = "take fewer --read-workers"

PairIds = tuple[Sequences, Sequences]
"""Source and target ids."""

UpdateIds = tuple[Position, Update, list[MicroBatch[PairIds]]]
"""An update, the position after it, and the micro-batches of a rank."""

UpdateStream = Generator[UpdateIds, None, None]
"""Updates in their order, without end; closed when no more are needed."""


@dataclass(frozen=True)
class UpdateReader:
    """Reads what one rank computes of each update.

    Attributes:
        shards: the training pairs.
        sampler: plans which of them an update holds.
        subword_sampling: how their text is segmented.
        rank, num_ranks: which rank, of how many.
    """

    shards: Sequence[Pairs]
    sampler: Sampler
    subword_sampling: SubwordSampling
    rank: int
    num_ranks: int

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset, rank: int, num_ranks: int) -> "UpdateReader":
        """Return the reader of a rank for a dataset and a recipe."""
        return UpdateReader(
            shards=dataset.train,
            sampler=Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed),
            subword_sampling=SubwordSampling.of(recipe, dataset.codec),
            rank=rank,
            num_ranks=num_ranks,
        )

    def updates(
        self, position: Position, number: int, num_micro_batches: int, first: int = 0, step: int = 1
    ) -> UpdateStream:
        """Read updates from a position on.

        A rank without a micro-batch of its own reads the first pair: it takes part in the exchange
        of gradients, with a weight of 0.

        Args:
            position: of the first update.
            number: of that update, from 1.
            num_micro_batches: of all these updates.
            first, step: read every `step`-th update from the `first` on, counted from 0.
        """
        planned = enumerate(self.sampler.updates(position), number)
        for number_here, (position_after, update) in islice(planned, first, None, step):
            yield position_after, update, self._read(update, number_here, num_micro_batches)

    def _read(
        self, update: Update, number: int, num_micro_batches: int
    ) -> list[MicroBatch[PairIds]]:
        own = numbers_of_rank(len(update.pairs), num_micro_batches, self.rank, self.num_ranks)
        parts = {j: pairs_of(update.pairs, j, num_micro_batches) for j in own}
        shard = self.shards[update.shard]
        return [
            MicroBatch(j, int(bool(own)), self.subword_sampling.read(shard, pairs, number))
            for j, pairs in (parts or {0: update.pairs[:1]}).items()
        ]


@dataclass(frozen=True)
class Assignment:
    """Work of a worker process.

    Attributes:
        folder: of the dataset.
        recipe: all settings.
        rank, num_ranks: which rank it reads for, of how many.
        worker, num_workers: which of the rank's workers it is; it reads every
            num_workers-th update.
        position, number, num_micro_batches: where reading begins; see `UpdateReader.updates`.
    """

    folder: Path
    recipe: TrainRecipe
    rank: int
    num_ranks: int
    worker: int
    num_workers: int
    position: Position
    number: int
    num_micro_batches: int


def updates_by_workers(assign: Callable[[int], Assignment], num_workers: int) -> UpdateStream:
    """Read updates in worker processes, each at most two updates ahead.

    Args:
        assign: returns the assignment of a worker, by its number.
        num_workers: the number of processes.

    Raises:
        ResourceError: a worker was killed.
        NmtkitError, MemoryError, OSError: a worker raised it.
    """
    workers: list[Worker[UpdateIds]] = []
    try:
        for number in range(num_workers):
            workers.append(Worker(_serve, ended_early(_REMEDY)))
            workers[-1].send(assign(number))
        while True:
            for worker in workers:
                yield worker.receive()
    finally:
        for worker in workers:
            worker.end()


def _serve(connection: "Connection[UpdateIds, Any]") -> None:
    """Receive an assignment, and send the updates that it asks for."""
    task: Assignment = connection.recv()
    dataset = Dataset.open(task.folder)
    reader = UpdateReader.of(task.recipe, dataset, task.rank, task.num_ranks)
    where = task.position, task.number, task.num_micro_batches
    for update in reader.updates(*where, task.worker, task.num_workers):
        connection.send(update)
