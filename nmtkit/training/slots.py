"""Slots: the parts of an update, each of which fits into memory, and which ranks share.

Nothing here needs torch: processes that read batches start without it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nmtkit.data.binary import Indices
from nmtkit.data.sampler import Update


@dataclass(frozen=True)
class Cut:
    """How an update is divided.

    Attributes:
        num_slots: S, the same throughout a run.
        num_pieces: into how many pieces each slot is cut, where a whole one did not fit.
    """

    num_slots: int
    num_pieces: int


@dataclass(frozen=True)
class Slot:
    """What one forward and backward pass of a rank computes.

    Attributes:
        number, piece: its place in the update, which seed its dropout.
        pairs: indices in the shard.
        weight: 1, or 0 on a rank that has nothing of its own and takes part all the same.
        is_last: it is the last one of its rank in the update.
    """

    number: int
    piece: int
    pairs: Indices
    weight: int
    is_last: bool


def num_slots(update_tokens: int, max_tokens: int) -> int:
    """Compute into how many slots of about `max_tokens` an update is cut."""
    return math.ceil(update_tokens / max_tokens)


def cut_into_slots(update: Update, num_slots: int) -> list[Indices]:
    """Deal an update's pairs, which are sorted by length, evenly to at most `num_slots` slots.

    Returns:
        indices of the pairs of each slot, none empty.
    """
    return [update.pairs[slot::num_slots] for slot in range(min(num_slots, len(update.pairs)))]


def own_slots(update: Update, cut: Cut, rank: int, num_ranks: int) -> Iterator[Slot]:
    """Yield a rank's share of an update, at least one slot.

    Args:
        update: its pairs.
        cut: how it is divided.
        rank: whose share.
        num_ranks: W, how many share it.
    """
    slots = cut_into_slots(update, cut.num_slots)
    own = list(enumerate(slots))[rank::num_ranks]
    shares = own or [(0, slots[0][:1])]
    for number, pairs in shares:
        num_pieces = min(cut.num_pieces, len(pairs))
        for piece in range(num_pieces):
            is_last = number == shares[-1][0] and piece == num_pieces - 1
            yield Slot(number, piece, pairs[piece :: cut.num_pieces], int(bool(own)), is_last)
