"""What a decoder remembers between two steps of a search, as plain tensors.

The rows (hypotheses) of one sentence share most of their history. So the keys and values of every
position that was ever computed are stored once a sentence, as entries, and each row only keeps a
mask of the entries that are its own prefix. Expanding, reordering and dropping rows then touch the
mask alone: keys and values are never copied when the search changes its mind, and the attention of
all rows of a sentence is one matrix product. Entries that no row descends from any more are thrown
out when the storage is full.

Shapes: L layers, B sentences, W rows a sentence, C entries there is room for, S longest source.
"""

import torch
from torch import Tensor

ENTRY_BLOCK = 32
"""Room is made for at least this many entries at a time."""

WORTH_COMPACTING = 0.6
"""Dead entries are thrown out, instead of making more room, where fewer than this share live."""


class DecoderState:
    """Keys and values of a decoder for B sentences, W rows each.

    Built by `Transformer.start` with one row a sentence; a step appends W entries.
    """

    def __init__(
        self, memory: tuple[Tensor, Tensor], memory_mask: Tensor | None, sizes: tuple[int, int]
    ) -> None:
        """Begin with an empty prefix.

        Args:
            memory: keys (L, B, S, HK) and values (L, B, S, HU) of the source.
            memory_mask: (B, 1, 1, S) True at real tokens, or None if all are.
            sizes: HK and HU of the decoder's own keys and values.
        """
        self._memory_keys, self._memory_values = memory
        self.memory_bias = None if memory_mask is None else _bias(memory_mask, memory[0].dtype)
        layers, sentences = self._memory_keys.shape[:2]
        # Entries are read only after they were written, so that they need no initial value.
        self._keys = self._memory_keys.new_empty(layers, sentences, ENTRY_BLOCK, sizes[0])
        self._values = self._memory_keys.new_empty(layers, sentences, ENTRY_BLOCK, sizes[1])
        self._prefix = torch.zeros(
            sentences, 1, ENTRY_BLOCK, dtype=torch.bool, device=self._keys.device
        )
        self._num_entries = 0
        self.position = -1
        self.prefix_bias: Tensor | None = None

    @property
    def num_sentences(self) -> int:
        """B."""
        return self._prefix.shape[0]

    @property
    def width(self) -> int:
        """W."""
        return self._prefix.shape[1]

    def expand(self, width: int) -> None:
        """Turn each sentence's only row into `width` equal ones."""
        assert self.width == 1, f"only a single row can be expanded, not {self.width}"
        self._prefix = self._prefix.repeat(1, width, 1)

    def reorder(self, parents: Tensor) -> None:
        """Let row w of each sentence continue its row parents[:, w].

        Args:
            parents: (B, W) int64 rows within the sentence.
        """
        index = parents[:, :, None].expand(-1, -1, self._prefix.shape[2])
        self._prefix = self._prefix.gather(1, index)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only, in this order.

        Args:
            sentences: (B',) int64 indices of sentences.
        """
        self._memory_keys = self._memory_keys.index_select(1, sentences)
        self._memory_values = self._memory_values.index_select(1, sentences)
        if self.memory_bias is not None:
            self.memory_bias = self.memory_bias.index_select(0, sentences)
        self._keys = self._keys.index_select(1, sentences)
        self._values = self._values.index_select(1, sentences)
        self._prefix = self._prefix.index_select(0, sentences)

    def begin_step(self) -> None:
        """Make room for one entry a row, and let each row see its own."""
        if self._num_entries + self.width > self._prefix.shape[2]:
            self._make_room()
        first, last = self._num_entries, self._num_entries + self.width
        own = torch.eye(self.width, dtype=torch.bool, device=self._prefix.device)
        self._prefix[:, :, first:last] = own
        self._num_entries = last
        self.position += 1
        # The only row of a sentence descends from every entry.
        self.prefix_bias = (
            None if self.width == 1 else _bias(self._prefix[:, None, :, :last], self._keys.dtype)
        )

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store one layer's new entries (B, W, HK) and (B, W, HU); return all so far (B, n, .)."""
        first, last = self._num_entries - self.width, self._num_entries
        self._keys[layer, :, first:last] = keys
        self._values[layer, :, first:last] = values
        return self._keys[layer, :, :last], self._values[layer, :, :last]

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return the source's keys (B, S, HK) and values (B, S, HU) for one layer."""
        return self._memory_keys[layer], self._memory_values[layer]

    def _make_room(self) -> None:
        """Throw out dead entries if there are many, else double the storage."""
        is_live = self._prefix[:, :, : self._num_entries].any(1)  # (B, n)
        num_live = int(is_live.sum(1).max())
        if num_live < WORTH_COMPACTING * self._num_entries:
            # Live entries first, in the order in which they were made.
            order = is_live.to(torch.int8).argsort(dim=1, descending=True, stable=True)
            order = order[:, :num_live]
            self._keys = _take_entries(self._keys, order)
            self._values = _take_entries(self._values, order)
            index = order[:, None, :].expand(-1, self.width, -1)
            self._prefix = self._prefix.gather(2, index)
            self._num_entries = num_live
        room = max(ENTRY_BLOCK, self.width, self._num_entries)
        self._keys = _enlarge(self._keys, self._num_entries, room)
        self._values = _enlarge(self._values, self._num_entries, room)
        self._prefix = torch.nn.functional.pad(self._prefix[:, :, : self._num_entries], (0, room))


def _take_entries(stored: Tensor, order: Tensor) -> Tensor:
    """Select entries (B, n) of stored (L, B, C, size) -> (L, B, n, size)."""
    layers, sentences, capacity, size = stored.shape
    offsets = torch.arange(sentences, device=order.device)[:, None] * capacity
    rows = (order + offsets).flatten()
    taken = stored.view(layers, sentences * capacity, size).index_select(1, rows)
    return taken.view(layers, sentences, -1, size)


def _enlarge(stored: Tensor, num_entries: int, room: int) -> Tensor:
    """Copy the first entries of stored (L, B, C, size) to where there is room for more."""
    layers, sentences, _, size = stored.shape
    larger = stored.new_empty(layers, sentences, num_entries + room, size)
    larger[:, :, :num_entries] = stored[:, :, :num_entries]
    return larger


def _bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask, True = may attend, into what is added to attention scores: 0 or -inf."""
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, float("-inf"))
