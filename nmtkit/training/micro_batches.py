"""Micro-batches: the parts of an update whose gradients accumulate (gradient accumulation).

Of an update with M micro-batches, micro-batch j has the pairs j, j + M, j + 2M and so on. The pairs
of an update are sorted by length, so all micro-batches have about the same number of tokens. Rank r
of W computes the micro-batches r, r + W, r + 2W and so on.

M is decided when a run begins, and grows only after an update did not fit into memory. The seed of
a micro-batch's dropout follows from its number, so the number of ranks and resuming do not matter.

This module does not import torch: the loader's worker processes start without it.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from nmtkit.data.binary import Indices
from nmtkit.errors import DamagedError, ResourceError
from nmtkit.storage.reading import read_file
from nmtkit.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from nmtkit.training.distributed import Ranks

Form = TypeVar("Form")

Increases = list[list[int]]
"""First update and number of micro-batches of each increase, in order."""


@dataclass(frozen=True)
class MicroBatch(Generic[Form]):
    """The work of one forward and backward pass of a rank.

    Attributes:
        number: number of the micro-batch in the update, from 0; it seeds the dropout.
        weight: 1; or 0 on a rank without a micro-batch, which only takes part in the exchange.
        pairs: source and target ids on the host, or a `Batch` on the device.
    """

    number: int
    weight: int
    pairs: Form


def fewest_micro_batches(update_tokens: int, max_tokens: int, num_ranks: int) -> int:
    """Return the smallest number of micro-batches with at most `max_tokens` tokens each.

    It is a multiple of the number of ranks.
    """
    needed = math.ceil(update_tokens / max_tokens)
    return num_ranks * math.ceil(needed / num_ranks)


def micro_batches_of_rank(
    num_pairs: int, num_micro_batches: int, rank: int, num_ranks: int
) -> range:
    """Return the numbers of the micro-batches that a rank computes; possibly none."""
    return range(rank, min(num_micro_batches, num_pairs), num_ranks)


def pairs_of(pairs: Indices, number: int, num_micro_batches: int) -> Indices:
    """Return the pairs of an update that belong to one micro-batch."""
    return pairs[number::num_micro_batches]


class MicroBatchSchedule:
    """The number of micro-batches of every update of a run.

    Attributes:
        initial: number of micro-batches of the run's first update.
    """

    def __init__(self, run: RunFolder, initial: int, increases: Increases) -> None:
        """Store the number of the first update, and the result of `read_increases`."""
        self.initial = initial
        self._run = run
        self._increases = [*increases]

    def at(self, update: int) -> int:
        """Return the number of micro-batches of an update."""
        return max([self.initial, *(n for first, n in self._increases if first <= update)])

    def increase(self, update: int, number: int, *, is_writer: bool) -> None:
        """Increase the number of micro-batches per update.

        Args:
            update: first update with this number.
            number: micro-batches per update.
            is_writer: write the increase to the run's folder, as one rank must.

        Raises:
            ResourceError: the file cannot be written.
        """
        self._increases.append([update, number])
        if is_writer:
            values = [
                {"from_update": first, "micro_batches": number} for first, number in self._increases
            ]
            content = json.dumps(values, indent=2).encode() + b"\n"
            self._run.replace(self._run.micro_batches_path, content)

    def double(self, update: int, num_pairs: int, ranks: "Ranks") -> str:
        """Double the micro-batches from an update on that did not fit into memory.

        Args:
            update: the update.
            num_pairs: its number of pairs.
            ranks: all processes of the run.

        Returns:
            A line about it.

        Raises:
            ResourceError: each micro-batch has one pair already; or there are other ranks, which
                must restart because they wait for this one.
        """
        current = self.at(update)
        if current >= num_pairs:
            raise ResourceError(
                f"out of memory in update {update}, with one pair per micro-batch; use a smaller "
                "model or a larger machine"
            )
        self.increase(update, 2 * current, is_writer=ranks.is_first_to("split updates"))
        message = (
            f"update={update} did not fit into memory; updates have {2 * current} micro-batches "
            "from here on"
        )
        if not ranks.is_alone:
            raise ResourceError(f"{message}; run the same command again to continue")
        return message


def recorded_increases(run: RunFolder) -> bytes:
    """Return the content of a run's file of increases, empty if there is none."""
    path = run.micro_batches_path
    return read_file(path) if path.exists() else b""


def read_increases(run: RunFolder, initial: int) -> Increases:
    """Return the increases of the number of micro-batches that a run's folder records.

    Args:
        run: the folder of the run.
        initial: number of micro-batches of the run's first update.

    Raises:
        DamagedError: the file is not a list of increases.
    """
    if run.micro_batches_path.exists():
        return _read_pairs(run.micro_batches_path, "micro_batches")
    if run.pieces_path.exists():  # version 0.1 wrote factors of the initial number
        return [[first, initial * n] for first, n in _read_pairs(run.pieces_path, "pieces")]
    return []


def _read_pairs(path: Path, key: str) -> Increases:
    try:
        pairs = [[one["from_update"], one[key]] for one in json.loads(read_file(path))]
    except (ValueError, TypeError, KeyError, RecursionError):
        pairs = [[0, 0]]
    if not all(isinstance(number, int) and number > 0 for pair in pairs for number in pair):
        raise DamagedError(
            f"{path}: not a list of increases of micro-batches; delete the file, and updates that "
            "do not fit into memory are split again"
        )
    return pairs
