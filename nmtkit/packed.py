"""Sequences laid end to end, the form in which every batch travels.

Padding does not exist outside attention, so it can leak nowhere.

`Layout` knows where each sequence begins and ends; `Packed` is values with their layout. Attention
alone turns packed values into a padded block and back, through `Layout.unpack` and `Layout.pack`.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class Layout:
    """Where sequences of given lengths stand when they are laid end to end.

    Attributes:
        lengths: tokens of each sequence, on the host, so that shapes need no synchronisation.
        num_tokens: X, the sum of the lengths.
        longest: T, the length of the longest sequence.
        is_rectangular: all sequences are equally long, so a block of them has no padding.
        positions: (X,) place of each token in its sequence, from 0.
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
        rows = torch.repeat_interleave(torch.arange(len(self.lengths)), sizes)
        slots = rows * self.longest + positions
        # One copy to the device; nobody writes to its source, so that none has to wait for it.
        parts = (positions, slots, starts, ends)
        joined = torch.cat(parts).to(device, non_blocking=True)
        self._starts: Tensor
        self._ends: Tensor
        self.positions, self._slots, self._starts, self._ends = joined.split(
            [len(part) for part in parts]
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
        """(B + 1,) int32 index after each sequence's last token, a 0 before them."""
        return F.pad(self._ends, (1, 0)).int()

    @cached_property
    def mask(self) -> Tensor:
        """(B, T) bool, True where the padded block holds a token."""
        sizes = self._ends - self._starts
        return torch.arange(self.longest, device=sizes.device) < sizes[:, None]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors of this layout, by the attributes that hold them."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> "Layout":
        """Return the same layout with copies of its tensors, as on another device."""
        twin = copy(self)
        vars(twin).update(tensors)
        return twin

    def unpack(self, values: Tensor) -> Tensor:
        """Spread values (X, ...) over a padded block (B, T, ...); padding is 0."""
        shape = (self.num_sentences, self.longest, *values.shape[1:])
        if self.is_rectangular:
            return values.reshape(shape)
        flat: Tensor = _Spread.apply(values, self._slots, shape[0] * shape[1])  # type: ignore[no-untyped-call]
        return flat.view(shape)

    def pack(self, block: Tensor) -> Tensor:
        """Collect the tokens (X, ...) of a padded block (B, T, ...)."""
        flat = block.reshape(-1, *block.shape[2:])
        if self.is_rectangular:
            return flat
        packed: Tensor = _Collect.apply(flat, self._slots)  # type: ignore[no-untyped-call]
        return packed


@dataclass(frozen=True)
class Packed:
    """Values (X, ...) of sequences laid end to end."""

    values: Tensor
    layout: Layout


def pack_sequences(sequences: Sequence[Sequence[int]], device: torch.device) -> Packed:
    """Lay id sequences end to end.

    Args:
        sequences: B sequences of ids, none of them empty.
        device: where the tensors go.

    Returns:
        ids (X,) int64 with their layout.
    """
    ids = torch.tensor([i for sequence in sequences for i in sequence], dtype=torch.int64)
    return Packed(ids.to(device), Layout([len(s) for s in sequences], device))


class _Spread(torch.autograd.Function):
    """Rows (X, ...) to their slots of a zeroed block (rows, ...); the transpose of `_Collect`.

    torch's own index_select would add gradients row by row; slots are distinct, so a plain copy
    in either direction is enough.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, slots: Tensor, num_slots: int) -> Tensor:
        ctx.save_for_backward(slots)
        return _scatter_rows(values, slots, num_slots)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (slots,) = ctx.saved_tensors
        return gradient.index_select(0, slots), None, None


class _Collect(torch.autograd.Function):
    """The rows (X, ...) in given slots of a block (rows, ...)."""

    @staticmethod
    def forward(ctx: Any, block: Tensor, slots: Tensor) -> Tensor:
        ctx.save_for_backward(slots)
        ctx.num_slots = block.shape[0]
        return block.index_select(0, slots)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (slots,) = ctx.saved_tensors
        return _scatter_rows(gradient, slots, ctx.num_slots), None


def _scatter_rows(values: Tensor, slots: Tensor, num_slots: int) -> Tensor:
    block = values.new_zeros(num_slots, *values.shape[1:])
    return block.index_copy_(0, slots, values)
