"""Packed batches: sequences laid end to end without padding.

`Layout` knows where each sequence begins and ends; `Packed` is values with their layout. Only
attention converts packed values to a padded block and back, with `Layout.unpack` and `Layout.pack`,
so padding cannot affect any other computation.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class Layout:
    """The positions of sequences of given lengths that are laid end to end.

    Attributes:
        lengths: tokens of each sequence, on the host, so that shapes need no synchronisation.
        num_tokens: X, the sum of the lengths.
        longest: T, the length of the longest sequence.
        is_rectangular: all sequences are equally long, so the padded block has no padding.
        positions: (X,) position of each token in its sequence, from 0.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        assert lengths, "a layout holds at least one sequence"
        assert min(lengths) > 0, f"no sequence may be empty: {lengths}"
        self.lengths = tuple(lengths)
        self.num_tokens = sum(self.lengths)
        self.longest = max(self.lengths)
        self.is_rectangular = min(self.lengths) == self.longest
        sizes = torch.tensor(self.lengths)
        ends = torch.cumsum(sizes, 0)
        starts = ends - sizes
        positions = torch.arange(self.num_tokens) - torch.repeat_interleave(starts, sizes)
        sequences = torch.repeat_interleave(torch.arange(len(self.lengths)), sizes)
        rows = sequences * self.longest + positions
        # A single copy to the device. Its source is never written again, so nothing waits for it.
        tensors = (positions, rows, starts, ends)
        joined = torch.cat(tensors).to(device, non_blocking=True)
        self._starts: Tensor
        self._ends: Tensor
        self.positions, self._rows, self._starts, self._ends = joined.split(
            [len(tensor) for tensor in tensors]
        )

    @property
    def num_sentences(self) -> int:
        """B, the number of sequences."""
        return len(self.lengths)

    @property
    def starts(self) -> Tensor:
        """(B,) index of each sequence's first token."""
        return self._starts

    @cached_property
    def ends(self) -> Tensor:
        """(B + 1,) int32: 0, then the index after each sequence's last token."""
        return F.pad(self._ends, (1, 0)).int()

    @cached_property
    def mask(self) -> Tensor:
        """(B, T) bool, True where the padded block has a token."""
        sizes = self._ends - self._starts
        return torch.arange(self.longest, device=sizes.device) < sizes[:, None]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors of this layout, by attribute name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> "Layout":
        """Return this layout with other copies of its tensors, such as on another device."""
        layout = copy(self)
        vars(layout).update(tensors)
        return layout

    def unpack(self, values: Tensor) -> Tensor:
        """Convert values (X, ...) to a padded block (B, T, ...); padding is 0."""
        shape = (self.num_sentences, self.longest, *values.shape[1:])
        if self.is_rectangular:
            return values.reshape(shape)
        flat: Tensor = _Scatter.apply(values, self._rows, shape[0] * shape[1])  # type: ignore[no-untyped-call]
        return flat.view(shape)

    def pack(self, block: Tensor) -> Tensor:
        """Return the tokens (X, ...) of a padded block (B, T, ...)."""
        flat = block.reshape(-1, *block.shape[2:])
        if self.is_rectangular:
            return flat
        packed: Tensor = _Gather.apply(flat, self._rows)  # type: ignore[no-untyped-call]
        return packed


@dataclass(frozen=True)
class Packed:
    """Values (X, ...) of sequences laid end to end."""

    values: Tensor
    layout: Layout

    def split(self) -> tuple[Tensor, ...]:
        """Return the values of each sequence, views."""
        parts: tuple[Tensor, ...] = self.values.split(self.layout.lengths)
        return parts


def pack_vectors(sequences: Sequence[Tensor]) -> Packed:
    """Pack values (S, ...) of B sequences, on one device; `Packed.split` returns them."""
    layout = Layout([*map(len, sequences)], sequences[0].device)
    return Packed(torch.cat([*sequences]), layout)


def pack_sequences(sequences: Sequence[Sequence[int]], device: torch.device) -> Packed:
    """Pack id sequences.

    Args:
        sequences: B sequences of ids, none of them empty.
        device: of the result.

    Returns:
        ids (X,) int64 with their layout.
    """
    ids = torch.tensor([i for sequence in sequences for i in sequence], dtype=torch.int64)
    return Packed(ids.to(device), Layout([len(s) for s in sequences], device))


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, batch_size: int
) -> Iterator[list[int]]:
    """Yield the indices of sequences batch by batch, the longest first.

    Args:
        lengths: tokens of each sequence.
        batch_tokens: largest number of tokens per batch, padding to the longest sequence counted;
            a longer sequence is a batch alone.
        batch_size: largest number of sequences per batch.
    """
    assert batch_tokens > 0 < batch_size, "limits of 0 stand for those of a device"
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        num_fitting = batch_tokens // lengths[order[start]]
        size = max(1, min(num_fitting, batch_size))
        yield order[start : start + size]
        start += size


class _Scatter(torch.autograd.Function):
    """Copy values (X, ...) to given rows of a zeroed block (rows, ...); transpose of `_Gather`.

    The backward pass of torch's index_select adds gradients row by row. The rows are distinct
    here, so a plain copy is enough in both directions.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: Tensor, num_rows: int) -> Tensor:
        ctx.save_for_backward(rows)
        return _scatter_rows(values, rows, num_rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (rows,) = ctx.saved_tensors
        return gradient.index_select(0, rows), None, None


class _Gather(torch.autograd.Function):
    """Select the given rows (X, ...) of a block (rows, ...)."""

    @staticmethod
    def forward(ctx: Any, block: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.num_rows = block.shape[0]
        return block.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return _scatter_rows(gradient, rows, ctx.num_rows), None


def _scatter_rows(values: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    block = values.new_zeros(num_rows, *values.shape[1:])
    return block.index_copy_(0, rows, values)
