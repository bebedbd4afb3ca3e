"""Micro-batches: the parts of an update whose gradients accumulate (gradient accumulation).

Of an update with M micro-batches, micro-batch j has the pairs j, j + M, j + 2M and so on. The pairs
of an update are sorted by length, so all micro-batches have about the same number of tokens. Rank r
of W computes the micro-batches r, r + W, r + 2W and so on.

M is decided when a run begins, and grows only where updates do not fit into memory. The seed of
a micro-batch's dropout follows from its number, so the number of ranks and resuming do not matter.

This module does not import torch: the loader's worker processes start without it.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmtkit.data.binary import Indices
from nmtkit.errors import DamagedError, ResourceError
from nmtkit.storage.disk import read_file
from nmtkit.storage.json_data import JsonError, decode_text, encode
from nmtkit.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from nmtkit.training.distributed import Ranks


@dataclass(frozen=True)
class Increase:
    """An increase of the number of micro-batches, from an update on."""

    from_update: int
    micro_batches: int


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

    def __init__(self, run: RunFolder, initial: int, increases: Sequence[Increase]) -> None:
        """Store the number of the first update, and the result of `read_increases`."""
        self.initial = initial
        self._run = run
        self._increases = [*increases]

    def at(self, update: int) -> int:
        """Return the number of micro-batches of an update."""
        known = (one.micro_batches for one in self._increases if one.from_update <= update)
        return max([self.initial, *known])

    def increase(self, update: int, number: int, *, is_writer: bool) -> None:
        """Increase the number of micro-batches per update.

        Args:
            update: first update with this number.
            number: micro-batches per update.
            is_writer: write the increase to the run's folder, as one rank must.

        Raises:
            ResourceError: the file cannot be written.
        """
        self._increases.append(Increase(update, number))
        if is_writer:
            content = json.dumps(encode(self._increases), indent=2).encode() + b"\n"
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


def read_increases(run: RunFolder) -> list[Increase]:
    """Return the increases of the number of micro-batches that a run's folder records, in order.

    Raises:
        DamagedError: the file is not a list of increases.
    """
    path = run.micro_batches_path
    if not path.exists():
        return []
    try:
        return decode_text(list[Increase], read_file(path))
    except JsonError as error:
        raise DamagedError(
            f"{path}: {error}; delete the file, and updates that do not fit into memory are split "
            "again"
        ) from None


def initial_seed(seed: int) -> int:
    """Derive the seed of the initial parameters."""
    return _derive(f"{seed}/init")


def micro_batch_seed(seed: int, update: int, number: int, initial: int) -> int:
    """Derive the seed of the dropout in one micro-batch of an update.

    Args:
        seed: seed of the run.
        update: number of the update, from 1.
        number: number of the micro-batch, from 0.
        initial: number of micro-batches in the run's first update.
    """
    first, later = number % initial, number // initial
    return _derive(f"{seed}/{update}/{first}" + (f"/{later}" if later else ""))


def subword_seed(seed: int, update: int, pair: int, side: str) -> int:
    """Derive the seed of the segmentation of one side of a pair in an update."""
    return _derive(f"{seed}/{update}/{pair}/{side}")


def noise_seed(seed: int, update: int, modifier: str) -> int:
    """Derive the seed of the draws of one modifier for all pairs of an update."""
    return _derive(f"{seed}/{update}/{modifier}")


def _derive(purpose: str) -> int:
    """Hash a purpose to 63 bits."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
