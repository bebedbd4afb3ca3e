"""Ids of the micro-batches of updates, read from a dataset by this process or by workers.

All ids follow from the position at which reading begins. This module does not import torch, so
worker processes start without it; `loader.py` turns ids into batches.
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
from nmtkit.training.micro_batches import MicroBatch, micro_batches_of_rank
from nmtkit.training.noise import Noise
from nmtkit.training.subword_sampling import SubwordSampling

_REMEDY = "take fewer --read-workers"

PairIds = tuple[Sequences, Sequences]
"""Source and target ids."""

UpdateIds = tuple[Position, Update, list[MicroBatch[PairIds]]]
"""The position after an update, the update, and the micro-batches of a rank."""

UpdateStream = Generator[UpdateIds, None, None]
"""Updates in order, without end; closed when no more are needed."""


@dataclass(frozen=True)
class UpdateReader:
    """Reads the micro-batches of one rank.

    Attributes:
        shards: the training pairs.
        sampler: chooses the pairs of each update.
        noise: changes their text.
        subword_sampling: samples their segmentation.
        rank, num_ranks: number of the rank, and number of ranks.
    """

    shards: Sequence[Pairs]
    sampler: Sampler
    noise: Noise
    subword_sampling: SubwordSampling
    rank: int
    num_ranks: int

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset, rank: int, num_ranks: int) -> "UpdateReader":
        """Return the reader of a rank for a dataset and a recipe."""
        return UpdateReader(
            shards=dataset.train,
            sampler=Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed),
            noise=Noise.of(recipe, dataset),
            subword_sampling=SubwordSampling.of(recipe, dataset.codec),
            rank=rank,
            num_ranks=num_ranks,
        )

    @property
    def segments_text(self) -> bool:
        """Reading segments text, which takes longer than reading ids."""
        return self.noise.is_active or self.subword_sampling.is_active

    def updates(
        self, position: Position, number: int, num_micro_batches: int, first: int = 0, step: int = 1
    ) -> UpdateStream:
        """Read updates from a position on.

        A rank without a micro-batch reads the first pair with a weight of 0, because it takes part
        in the exchange of gradients.

        Args:
            position: position of the first update in the data.
            number: number of that update, from 1.
            num_micro_batches: micro-batches per update.
            first, step: read every `step`-th update, starting from index `first`.
        """
        planned = enumerate(self.sampler.updates(position), number)
        for number_here, (position_after, update) in islice(planned, first, None, step):
            yield position_after, update, self._read(update, number_here, num_micro_batches)

    def _read(
        self, update: Update, number: int, num_micro_batches: int
    ) -> list[MicroBatch[PairIds]]:
        shard = self.shards[update.shard]
        lines = self.noise.lines(shard, update.pairs, number)
        own = micro_batches_of_rank(len(lines), num_micro_batches, self.rank, self.num_ranks)
        parts = {j: lines.part(j, num_micro_batches) for j in own}
        return [
            MicroBatch(
                j,
                int(bool(own)),
                self.subword_sampling.sample(*self.noise.read(shard, part), number),
            )
            for j, part in (parts or {0: lines.part(0, len(lines))}).items()
        ]


@dataclass(frozen=True)
class Assignment:
    """Work of a worker process.

    Attributes:
        folder: folder of the dataset.
        recipe: all settings.
        rank, num_ranks: number of the rank that it reads for, and number of ranks.
        worker, num_workers: number of the worker, and workers per rank; it reads every
            num_workers-th update.
        position, number, num_micro_batches: see `UpdateReader.updates`.
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
        assign: returns the assignment of a worker, given its number.
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
