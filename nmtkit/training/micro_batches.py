"""Micro-batches: the parts of an update that are computed one after another.

This is gradient accumulation. An update of M micro-batches gives micro-batch j the pairs j, j + M,
j + 2M and so on. The pairs of an update are sorted by length, so all micro-batches have about the
same number of tokens. Rank r of W computes the micro-batches r, r + W, r + 2W and so on.

M is decided when a run begins, and grows only after an update did not fit into memory. The seed of
a micro-batch's dropout follows from its number, so neither ranks nor resuming change a run.

This module does not import torch: the loader's worker processes start without it.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from nmtkit.data.binary import Indices
from nmtkit.errors import DamagedError
from nmtkit.storage.durable import replace_file
from nmtkit.storage.run_folder import RunFolder

Form = TypeVar("Form")


@dataclass(frozen=True)
class MicroBatch(Generic[Form]):
    """The work of one forward and backward pass of a rank.

    Attributes:
        number: its place in the update, from 0; it seeds the dropout.
        weight: 1, or 0 on a rank that has no micro-batch of its own and only takes part.
        pairs: source and target ids as they are read, or a `Batch` as it is computed.
    """

    number: int
    weight: int
    pairs: Form


def fewest_micro_batches(update_tokens: int, max_tokens: int, num_ranks: int) -> int:
    """Return the smallest multiple of the ranks whose micro-batches have at most `max_tokens`."""
    needed = math.ceil(update_tokens / max_tokens)
    return num_ranks * math.ceil(needed / num_ranks)


def numbers_of_rank(num_pairs: int, num_micro_batches: int, rank: int, num_ranks: int) -> range:
    """Return the numbers of the micro-batches that a rank computes; none may be left for it."""
    return range(rank, min(num_micro_batches, num_pairs), num_ranks)


def pairs_of(pairs: Indices, number: int, num_micro_batches: int) -> Indices:
    """Return the pairs of an update that belong to one micro-batch."""
    return pairs[number::num_micro_batches]


class MicroBatchSchedule:
    """The number of micro-batches of every update of a run.

    Attributes:
        initial: of the first update.
    """

    def __init__(self, run: RunFolder, initial: int) -> None:
        """Read the increases that a run's folder holds.

        Raises:
            DamagedError: the file is not what was written.
        """
        self.initial = initial
        self._path = run.micro_batches_path
        self._increases = _read_increases(run, initial)

    def at(self, update: int) -> int:
        """Return the number of micro-batches of an update."""
        return max([self.initial, *(n for first, n in self._increases if first <= update)])

    def increase(self, update: int, number: int, *, is_writer: bool) -> None:
        """Split updates into more micro-batches than before.

        Args:
            update: the first of these updates.
            number: their micro-batches.
            is_writer: write it to the run's folder, as one rank must.

        Raises:
            ResourceError: it cannot be written.
        """
        self._increases.append((update, number))
        if is_writer:
            values = [
                {"from_update": first, "micro_batches": number} for first, number in self._increases
            ]
            replace_file(self._path, json.dumps(values, indent=2).encode() + b"\n")


def recorded_increases(run: RunFolder) -> bytes:
    """Return the file of a run's increases as bytes, empty where there is none."""
    path = run.micro_batches_path
    return path.read_bytes() if path.exists() else b""


def _read_increases(run: RunFolder, initial: int) -> list[tuple[int, int]]:
    """Return (from_update, micro-batches) of each increase, in their order."""
    if run.micro_batches_path.exists():
        return _read_pairs(run.micro_batches_path, "micro_batches")
    if run.pieces_path.exists():  # version 0.1 wrote factors on the initial number
        return [(first, initial * n) for first, n in _read_pairs(run.pieces_path, "pieces")]
    return []


def _read_pairs(path: Path, key: str) -> list[tuple[int, int]]:
    try:
        pairs = [(one["from_update"], one[key]) for one in json.loads(path.read_bytes())]
    except (ValueError, TypeError, KeyError, RecursionError):
        pairs = [(0, 0)]
    if not all(isinstance(number, int) and number > 0 for pair in pairs for number in pair):
        raise DamagedError(
            f"{path}: not a list of increases of micro-batches; delete the file, and updates that "
            "do not fit into memory are split again"
        )
    return pairs
