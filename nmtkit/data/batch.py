"""Batches: the ids of some pairs, packed as the model reads them; slots: the parts of an update."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmtkit.data.binary import Pairs, Side
from nmtkit.data.sampler import Indices, Update
from nmtkit.packed import Layout, Packed
from nmtkit.symbols import BOS_ID


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as tensors.

    Attributes:
        source: ids (X,), each sentence ending with the end symbol.
        target_in: ids (Y,), what the decoder reads: the begin symbol, then all tokens but the last.
        target_out: ids (Y,), what it must predict: the tokens, the last being the end symbol.
    """

    source: Packed
    target_in: Packed
    target_out: Tensor

    @property
    def sizes(self) -> tuple[int, int]:
        """X and Y, the source and target tokens."""
        return self.source.layout.num_tokens, self.target_in.layout.num_tokens


def gather(pairs: Pairs, indices: Indices, device: torch.device) -> Batch:
    """Read pairs of a shard into a batch.

    Args:
        pairs: the shard.
        indices: (B,) which of its pairs.
        device: where the tensors go.
    """
    return batch_of(read(pairs.source, indices, device), read(pairs.target, indices, device))


def batch_of(source: Packed, target: Packed) -> Batch:
    """Make a batch of the ids of both sides, each sentence ending with the end symbol."""
    shifted = target.values.roll(1)
    shifted[target.layout.starts] = BOS_ID
    return Batch(source, Packed(shifted, target.layout), target.values)


def read(side: Side, indices: Indices, device: torch.device) -> Packed:
    """Lay sequences of a memory map end to end, without a loop over them."""
    first = side.offsets[indices].astype(np.int64)
    lengths = side.offsets[indices + 1].astype(np.int64) - first
    begins = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(first - begins, lengths)
    ids = torch.from_numpy(side.ids[places].astype(np.int64))
    return Packed(ids.to(device), Layout(lengths.tolist(), device))


def num_slots(update_tokens: int, max_tokens: int) -> int:
    """Compute into how many slots of about `max_tokens` an update is cut."""
    return math.ceil(update_tokens / max_tokens)


def cut_into_slots(update: Update, num_slots: int) -> list[Indices]:
    """Deal an update's pairs, which are sorted by length, evenly to at most `num_slots` slots.

    Returns:
        indices of the pairs of each slot, none empty.
    """
    return [update.pairs[slot::num_slots] for slot in range(min(num_slots, len(update.pairs)))]
