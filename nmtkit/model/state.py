"""The state of a decoder between two steps of a search: its keys and values.

The rows (hypotheses) of one sentence share most of their prefixes. So each computed position of a
sentence is stored once, as an entry, and each row has a mask of the entries in its prefix.
Expanding and reordering rows changes only the mask: no keys or values are copied. The attention of
all rows of a sentence is one matrix product. When the storage is full, dead entries are removed:
those in no row's prefix, and those that have left the window of self-attention.

Shapes: L layers, B sentences, W rows of a sentence, H heads, K and U key and value size of a head,
C capacity in entries, n entries stored, S longest source.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

ENTRY_BLOCK = 32
"""Smallest number of entries by which the capacity grows."""

COMPACT_BELOW = 0.6
"""Dead entries are removed before the capacity grows if the share of live ones is below this."""

MASKED = float("-inf")
"""Added to the attention score of a position that a row may not attend to; others get 0."""

STORES_PRODUCTS = ("cuda",)
"""Types of devices on which keys and values stay as matrix products give them.

In bfloat16 a step reads half as much. On other devices they have the type of hidden vectors.
"""


def stored_dtype(product: Tensor, hidden: Tensor) -> torch.dtype:
    """Return the type in which keys and values are stored, and the attention of steps computed.

    Args:
        product: keys and values as they were projected.
        hidden: the vectors that were projected, float32 also if products are bfloat16.
    """
    return product.dtype if product.device.type in STORES_PRODUCTS else hidden.dtype


class DecoderState:
    """Keys and values of a decoder for B sentences, W rows each.

    `Transformer.start` builds it with one row per sentence; a step appends an entry per row. It
    returns keys and values as views for batched products: BH matrices, one per head of a sentence.

    Attributes:
        length: number of tokens that each row has read.
        position: (1,) position of the token of this step, from 0.
        memory_bias: (BH, 1, S) added to the scores of the source's positions.
        prefix_bias: (BH, W, n) added to the scores of the entries.
    """

    def __init__(
        self,
        memory: tuple[Tensor, Tensor],
        memory_mask: Tensor,
        sizes: tuple[int, int],
        window: int,
    ) -> None:
        """Start with an empty prefix.

        Args:
            memory: keys (L, B, H, K, S) and values (L, B, H, S, U) of the source.
            memory_mask: (B, S) True at real tokens.
            sizes: K and U of the decoder's own keys and values.
            window: number of last positions that a row attends to, the new one counted; 0 = all.
        """
        self._memory_keys, self._memory_values = memory
        layers, sentences, heads = self._memory_keys.shape[:3]
        bias = _masked_bias(self._memory_keys, memory_mask.shape).masked_fill_(memory_mask, 0.0)
        self._memory_bias = bias[:, None].repeat(1, heads, 1)  # (B, H, S)
        # A tensor per layer: when the capacity grows, one layer at a time is stored twice.
        capacity, like = (sentences, heads, ENTRY_BLOCK), self._memory_keys
        self._keys = [like.new_empty(*capacity, sizes[0]) for _ in range(layers)]
        self._values = [like.new_empty(*capacity, sizes[1]) for _ in range(layers)]
        self._bias = _masked_bias(self._memory_keys, (sentences, 1, ENTRY_BLOCK))
        self._num_entries = 0
        self._new = slice(0, 0)  # the entries of the current step
        self._window = window
        # (B, C) position of each entry, from 0; used with a window only.
        self._positions = torch.zeros_like(self._bias[:, 0], dtype=torch.int64)
        self.length = 0
        self._own_bias = self._own_row_bias(1)
        self._view_memory()

    @property
    def num_sentences(self) -> int:
        """B."""
        return self._bias.shape[0]

    @property
    def width(self) -> int:
        """W."""
        return self._bias.shape[1]

    def expand(self, width: int) -> None:
        """Replace the single row of each sentence by `width` equal rows."""
        assert self.width == 1, f"only a single row can be expanded, not {self.width}"
        self._bias = self._bias.repeat(1, width, 1)
        self._own_bias = self._own_row_bias(width)

    def reorder(self, parents: Tensor) -> None:
        """Make row w of each sentence a copy of its row parents[:, w].

        Args:
            parents: (B, W) int64 rows within the sentence.
        """
        index = parents[:, :, None].expand(-1, -1, self._bias.shape[2])
        self._bias = self._bias.gather(1, index)

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences, in this order.

        Args:
            sentences: (B',) int64 indices of sentences.
        """
        self._memory_keys = self._memory_keys.index_select(1, sentences)
        self._memory_values = self._memory_values.index_select(1, sentences)
        self._memory_bias = self._memory_bias.index_select(0, sentences)
        self._replace_stored(lambda stored: stored.index_select(0, sentences))
        self._bias = self._bias.index_select(0, sentences)
        self._positions = self._positions.index_select(0, sentences)
        self._view_memory()

    def begin_step(self) -> None:
        """Add an entry for the next token of each row, and mask entries outside the window."""
        if self._num_entries + self.width > self._bias.shape[2]:
            self._make_room()
        first, last = self._num_entries, self._num_entries + self.width
        self._num_entries = last
        self._bias[:, :, first:last] = self._own_bias
        if self._window:
            self._positions[:, first:last] = self.length
            is_behind = self._positions <= self.length - self._window
            self._bias.masked_fill_(is_behind[:, None], MASKED)
        self.position = torch.arange(self.length, self.length + 1, device=self._bias.device)
        self.length += 1
        heads = self._memory_bias.shape[1]
        self.prefix_bias = self._bias[:, None, :, :last].expand(-1, heads, -1, -1).flatten(0, 1)
        self._new = slice(first, last)

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's new entries.

        Args:
            layer: its index.
            keys: (B, H, W, K).
            values: (B, H, W, U).

        Returns:
            keys (BH, K, n), scaled by K^-1/2, and values (BH, n, U) of all entries so far.
        """
        stored_keys, stored_values, new = self._keys[layer], self._values[layer], self._new
        torch.mul(keys, keys.shape[-1] ** -0.5, out=stored_keys[:, :, new])
        stored_values[:, :, new] = values
        all_keys, all_values = stored_keys[:, :, : new.stop], stored_values[:, :, : new.stop]
        return all_keys.flatten(0, 1).mT, all_values.flatten(0, 1)

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return the source's keys (BH, K, S) and values (BH, S, U) for one layer."""
        keys, values = self._memory
        return keys[layer], values[layer]

    def _own_row_bias(self, width: int) -> Tensor:
        """Return the bias (W, W) of W new entries, each visible to its own row only."""
        return _masked_bias(self._memory_keys, (width, width)).fill_diagonal_(0.0)

    def _replace_stored(self, replace: Callable[[Tensor], Tensor]) -> None:
        """Replace the keys and the values of each layer (B, H, C, size)."""
        for stored in (self._keys, self._values):
            for layer, tensor in enumerate(stored):
                stored[layer] = replace(tensor)

    def _view_memory(self) -> None:
        keys, values = self._memory_keys.flatten(1, 2), self._memory_values.flatten(1, 2)
        self._memory = [*keys.unbind()], [*values.unbind()]  # by layer
        self.memory_bias = self._memory_bias.flatten(0, 1)[:, None]

    def _make_room(self) -> None:
        """Remove dead entries if there are many; then make room for as many as are stored."""
        is_live = (self._bias[:, :, : self._num_entries] == 0).any(1)  # (B, n)
        num_live = int(is_live.sum(1).max())
        if num_live < COMPACT_BELOW * self._num_entries:
            # Live entries first, oldest first.
            order = is_live.to(torch.int8).argsort(dim=1, descending=True, stable=True)
            order = order[:, :num_live]
            self._replace_stored(partial(_select_entries, order=order))
            index = order[:, None, :].expand(-1, self.width, -1)
            self._bias = self._bias.gather(2, index)
            self._positions = self._positions.gather(1, order)
            self._num_entries = num_live
        room = max(ENTRY_BLOCK, self.width, self._num_entries)
        self._replace_stored(partial(_enlarge, num_entries=self._num_entries, room=room))
        self._bias = F.pad(self._bias[:, :, : self._num_entries], (0, room), value=MASKED)
        self._positions = F.pad(self._positions[:, : self._num_entries], (0, room))


def _masked_bias(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return like.new_full(shape, MASKED)


def _select_entries(stored: Tensor, order: Tensor) -> Tensor:
    """Select entries `order` (B, n): stored (B, H, C, size) -> (B, H, n, size)."""
    sentences, heads, capacity, size = stored.shape
    starts = torch.arange(sentences * heads, device=order.device).view(sentences, heads) * capacity
    rows = (order[:, None] + starts[:, :, None]).flatten()
    selected = stored.view(-1, size).index_select(0, rows)
    return selected.view(sentences, heads, -1, size)


def _enlarge(stored: Tensor, num_entries: int, room: int) -> Tensor:
    """Copy the first entries of stored (B, H, C, size) to a storage with `room` more."""
    larger = stored.new_empty(*stored.shape[:2], num_entries + room, stored.shape[3])
    larger[:, :, :num_entries] = stored[:, :, :num_entries]
    larger[:, :, num_entries:] = 0
    return larger
