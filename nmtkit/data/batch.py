"""Batches: the ids of some pairs, packed as the model reads them, on the device that computes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmtkit.data.binary import Indices, Pairs, Sequences
from nmtkit.packed import Layout, Packed
from nmtkit.symbols import BOS_ID

_CPU = torch.device("cpu")

_ALIGNMENT = 16
"""Bytes that each tensor begins at a multiple of, where several are sent as one."""


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
    return batch_of(pairs.source.take(indices), pairs.target.take(indices), device)


def batch_of(source: Sequences, target: Sequences, device: torch.device) -> Batch:
    """Make a batch of the ids of both sides, each sentence ending with the end symbol."""
    read, predicted = _packed(source), _packed(target)
    shifted = predicted.values.roll(1)
    shifted[predicted.layout.starts] = BOS_ID
    batch = Batch(read, Packed(shifted, predicted.layout), predicted.values)
    return batch if device.type == "cpu" else sent(batch, device)


def sent(batch: Batch, device: torch.device) -> Batch:
    """Copy a batch from the host to a device, all of its tensors as one.

    The host does not wait for a GPU to have them: what the GPU is given to compute afterwards,
    by whichever thread, comes after the copy.
    """
    source, target = batch.source.layout, batch.target_in.layout
    ids = [batch.source.values, batch.target_in.values, batch.target_out]
    places = iter(_send([*ids, *source.tensors.values(), *target.tensors.values()], device))
    source_ids, target_in, target_out = (next(places) for _ in ids)
    source, target = (
        layout.with_tensors({name: next(places) for name in layout.tensors})
        for layout in (source, target)
    )
    return Batch(Packed(source_ids, source), Packed(target_in, target), target_out)


def _send(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copy tensors to a device as one."""
    sizes = [-(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT for tensor in tensors]
    # Only from memory that stays where it is can a GPU copy by itself; torch keeps it for the next.
    staged = torch.empty(sum(sizes), dtype=torch.uint8, pin_memory=device.type == "cuda")
    for tensor, place in zip(tensors, staged.split(sizes), strict=True):
        _viewed(place, tensor).copy_(tensor)
    copied = staged.to(device, non_blocking=True).split(sizes)
    return [_viewed(place, tensor) for tensor, place in zip(tensors, copied, strict=True)]


def _viewed(place: Tensor, tensor: Tensor) -> Tensor:
    """Return bytes as a tensor of the type and shape of another."""
    return place[: tensor.nbytes].view(tensor.dtype).view(tensor.shape)


def _packed(sequences: Sequences) -> Packed:
    ids = torch.from_numpy(sequences.ids.astype(np.int64))
    return Packed(ids, Layout(sequences.lengths.tolist(), _CPU))
