"""What a rank reads of the updates: its slots, one after another, and their ids.

All of it follows from where one begins, so that it may be read ahead, and by other processes. They
start without torch.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset, Pairs, Sequences
from nmtkit.data.sampler import Position, Sampler, Update
from nmtkit.processes import Worker
from nmtkit.training.segmentation import Segmentation
from nmtkit.training.slots import Cut, Slot, own_slots

_TOO_MANY = "take fewer --read-workers"


@dataclass(frozen=True)
class Start:
    """Where reading begins, and how what is read is divided.

    Attributes:
        position: of the first update.
        number: which update that is, from 1.
        cut: of this update and of those after it.
    """

    position: Position
    number: int
    cut: Cut


@dataclass(frozen=True)
class SlotIds:
    """A slot with the ids of its pairs.

    Attributes:
        update: which it is of.
        position: the one after that update.
        slot: which of its slots.
        source, target: the ids.
    """

    update: Update
    position: Position
    slot: Slot
    source: Sequences
    target: Sequences


SlotStream = Generator[SlotIds, None, None]
"""Slots in their order, without end; closed when no more is wanted."""


@dataclass(frozen=True)
class Shares:
    """How a rank reads.

    Attributes:
        shards: the training pairs.
        sampler: which of them an update holds.
        segmentation: how their text is cut.
        rank: whose slots are read.
        num_ranks: W, among how many the slots are divided.
    """

    shards: Sequence[Pairs]
    sampler: Sampler
    segmentation: Segmentation
    rank: int
    num_ranks: int

    @staticmethod
    def of(recipe: TrainRecipe, dataset: Dataset, rank: int, num_ranks: int) -> "Shares":
        """Return how a rank reads a dataset as a recipe says."""
        return Shares(
            shards=dataset.train,
            sampler=Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed),
            segmentation=Segmentation.of(recipe, dataset.codec),
            rank=rank,
            num_ranks=num_ranks,
        )

    def slots(self, start: Start, first: int = 0, step: int = 1) -> SlotStream:
        """Read every so many of this rank's slots.

        Args:
            start: where to begin.
            first: the first to read, from 0.
            step: 1 = all from there on.
        """
        place = count()
        updates = self.sampler.updates(start.position)
        for number, (position, update) in enumerate(updates, start.number):
            for slot in own_slots(update, start.cut, self.rank, self.num_ranks):
                if next(place) % step == first:
                    pairs = self.shards[update.shard]
                    source, target = self.segmentation.read(pairs, slot.pairs, number)
                    yield SlotIds(update, position, slot, source, target)


@dataclass(frozen=True)
class Assignment:
    """All that a process that reads must know.

    Attributes:
        folder: of the dataset.
        recipe: all settings.
        rank, num_ranks: for whom it reads.
        worker, num_workers: of those who read for this rank, which one it is; it reads every so
            many slots.
        start: where to begin.
    """

    folder: Path
    recipe: TrainRecipe
    rank: int
    num_ranks: int
    worker: int
    num_workers: int
    start: Start


def slots_by_workers(assign: Callable[[int], Assignment], num_workers: int) -> SlotStream:
    """Read in other processes; each may be ahead by one slot, and by another that it sends.

    Args:
        assign: tells each worker, by its number, what to do.
        num_workers: how many.

    Raises:
        ResourceError: a worker was killed.
        NmtkitError, MemoryError, OSError: what a worker raised.
    """
    workers: list[Worker[SlotIds]] = []
    try:
        for number in range(num_workers):
            workers.append(Worker(_serve, _TOO_MANY))
            workers[-1].send(assign(number))
        while True:
            for worker in workers:
                yield worker.receive()
    finally:
        for worker in workers:
            worker.end()


def _serve(connection: "Connection[SlotIds, Any]") -> None:
    """Receive an assignment, and send the slots that it asks for."""
    task: Assignment = connection.recv()
    dataset = Dataset.open(task.folder)
    shares = Shares.of(task.recipe, dataset, task.rank, task.num_ranks)
    for slot_ids in shares.slots(task.start, task.worker, task.num_workers):
        connection.send(slot_ids)
