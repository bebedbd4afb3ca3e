"""Batches: packed ids of sentence pairs on the device of the model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmtkit.data.binary import Indices, PairIds, Pairs, Sequences
from nmtkit.packed import Layout, Packed
from nmtkit.symbols import BOS_ID, EOS_ID

_CPU = torch.device("cpu")

_ALIGNMENT = 16
"""Alignment in bytes of tensors that are copied together."""


@dataclass(frozen=True)
class LinkedPieces:
    """The K links between the pieces of a batch.

    Attributes:
        targets: (K,) int64, the place of the target piece among the Y target tokens.
        sources: (K,) int64, the place of the source piece in its sentence.
        weights: (K,) float32, 1 / number of links of the target piece.
    """

    targets: Tensor
    sources: Tensor
    weights: Tensor

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, in the order of the arguments."""
        return [self.targets, self.sources, self.weights]


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as tensors.

    Attributes:
        source: ids (X,); each sentence ends with the end symbol.
        target_in: ids (Y,), decoder input: the begin symbol, then all tokens except the last.
        target_out: ids (Y,), tokens to predict; each sentence ends with the end symbol.
        links: the word alignment of the pairs; None = there is none.
    """

    source: Packed
    target_in: Packed
    target_out: Tensor
    links: LinkedPieces | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """X and Y, the numbers of source and target tokens."""
        return self.source.layout.num_tokens, self.target_in.layout.num_tokens


def gather(pairs: Pairs, indices: Indices, device: torch.device) -> Batch:
    """Read pairs of a shard into a batch.

    Args:
        pairs: the shard.
        indices: (B,) indices of the pairs.
        device: of the batch.
    """
    return make_batch(pairs.take(indices), device)


def make_batch(pairs: PairIds, device: torch.device) -> Batch:
    """Make a batch on a device."""
    source, target = _packed(pairs.source), _packed(pairs.target)
    shifted = target.values.roll(1)
    shifted[target.layout.starts] = BOS_ID
    links = None if pairs.links is None else _linked(pairs.links, pairs.target)
    batch = Batch(source, Packed(shifted, target.layout), target.values, links)
    return batch if device.type == "cpu" else to_device(batch, device)


def eos_batch(source: Iterable[int], target: Iterable[int], device: torch.device) -> Batch:
    """Make a batch of sentences that consist of end symbols, for a pass without data.

    Args:
        source, target: (B,) lengths of the sentences.
        device: of the batch.
    """

    def ends(lengths: Iterable[int]) -> Sequences:
        return Sequences.pack([[EOS_ID] * length for length in lengths], "uint16")

    return make_batch(PairIds(ends(source), ends(target)), device)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Copy a batch from the host to a device, with a single copy for all tensors.

    The host does not wait for the copy to a GPU. Work given to the GPU afterwards, by any thread,
    runs after the copy.
    """
    source, target = batch.source.layout, batch.target_in.layout
    ids = [batch.source.values, batch.target_in.values, batch.target_out]
    links = batch.links.tensors if batch.links else []
    layouts = [*source.tensors.values(), *target.tensors.values()]
    copies = iter(_copy([*ids, *layouts, *links], device))
    source_ids, target_in, target_out = (next(copies) for _ in ids)
    source, target = (
        layout.with_tensors({name: next(copies) for name in layout.tensors})
        for layout in (source, target)
    )
    linked = LinkedPieces(*copies) if batch.links else None
    return Batch(Packed(source_ids, source), Packed(target_in, target), target_out, linked)


def _copy(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copy tensors to a device with a single copy."""
    sizes = [-(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT for tensor in tensors]
    # A GPU copies asynchronously from pinned memory only; torch caches that memory.
    staged = torch.empty(sum(sizes), dtype=torch.uint8, pin_memory=device.type == "cuda")
    for tensor, data in zip(tensors, staged.split(sizes), strict=True):
        _view_as(data, tensor).copy_(tensor)
    copied = staged.to(device, non_blocking=True).split(sizes)
    return [_view_as(data, tensor) for tensor, data in zip(tensors, copied, strict=True)]


def _view_as(data: Tensor, tensor: Tensor) -> Tensor:
    """View bytes as a tensor with the type and shape of another."""
    return data[: tensor.nbytes].view(tensor.dtype).view(tensor.shape)


def _linked(links: Sequences, target: Sequences) -> LinkedPieces:
    """Return the links of pairs, given their target sides."""
    sources, targets = links.ids.reshape(-1, 2).astype(np.int64).T
    ends = np.cumsum(target.lengths, dtype=np.int64)
    targets = targets + np.repeat(ends - target.lengths, links.lengths // 2)
    num_links = np.bincount(targets, minlength=1)
    weights = (1 / num_links[targets]).astype(np.float32)
    return LinkedPieces(*map(torch.from_numpy, (targets, sources.copy(), weights)))


def _packed(sequences: Sequences) -> Packed:
    ids = torch.from_numpy(sequences.ids.astype(np.int64))
    return Packed(ids, Layout(sequences.lengths.tolist(), _CPU))
