"""Multi-head scaled dot-product attention over packed sequences.

Source: paper, section 3.2. Encoder and decoder self-attention are one class with and without the
causal mask; attention of the decoder over the encoder's output, here called memory, is the other.
Each has a full form (packed, for training) and a step form (one position a row, for decoding).
Self-attention may be restricted to a neighbourhood; see window.py. Where flash attention can be
taken, packed sequences are attended to as they are; see flash.py.

Shapes: X, Y packed source, target tokens; B sentences; W rows of a sentence; T, S longest target,
source; D model size; H heads; K, U key and value size of a head.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from nmtkit.model.kernels import flash
from nmtkit.model.kernels.low_precision import Linear
from nmtkit.model.kernels.padded import attend, heads_first, split_heads, weights
from nmtkit.model.kernels.windowed import attend_near, neighbourhood
from nmtkit.model.state import DecoderState
from nmtkit.packed import Layout, Packed


class SelfAttention(nn.Module):
    """Attention of a sequence over itself, its three projections in one matrix."""

    def __init__(
        self,
        model_size: int,
        heads: int,
        key_size: int,
        value_size: int,
        dropout: float,
        window: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.window = window
        self.sizes = (heads * key_size, heads * key_size, heads * value_size)
        self.dropout = dropout
        self.query_key_value = Linear(model_size, sum(self.sizes))
        self.output = Linear(heads * value_size, model_size)
        _initialise(self.query_key_value, self.sizes)
        _initialise(self.output, (model_size,))

    def forward(self, x: Tensor, layout: Layout, is_causal: bool) -> Tensor:
        """Attend within each sequence.

        Args:
            x: (X, D) packed sequences.
            layout: where each begins and ends.
            is_causal: a position sees itself and what stands before it only.

        Returns:
            (X, D).
        """
        joint = self.query_key_value(x)  # (X, H(2K+U))
        dropout = self.dropout if self.training else 0.0
        near = neighbourhood(self.window, is_causal, layout.longest)
        sides = joint.split(self.sizes, -1)
        query, key, value = (_by_head(side, self.heads) for side in sides)
        if near is not None:
            context = attend_near(query, key, value, layout, near, dropout)
        elif flash.takes(joint.device, joint.dtype, (query.shape[-1], value.shape[-1]), dropout):
            reach = flash.SO_FAR if is_causal else flash.EVERYTHING
            context = flash.attend(query, key, value, (layout, layout), reach)
        else:
            context = self._attend_in_block(joint, layout, is_causal, dropout)
        output: Tensor = self.output(context.flatten(1))
        return output

    def weights(self, x: Tensor, layout: Layout, is_causal: bool) -> Tensor:
        """Compute how much each position attends to each of its sequence.

        Args:
            x, layout, is_causal: as for `forward`, which computes the same without keeping it.

        Returns:
            (B, H, T, T): a token's weights sum to 1, and are 0 where it may not attend; rows of
            padding mean nothing.
        """
        query, key, _ = layout.unpack(self.query_key_value(x)).split(self.sizes, -1)
        mask = layout.mask[:, None, None, :]
        reach = mask.new_ones(layout.longest, layout.longest)
        if is_causal:
            reach = reach.tril()
        if near := neighbourhood(self.window, is_causal, layout.longest):
            reach = reach.tril(near.after).triu(-near.before)
        query, key = heads_first(query, self.heads), heads_first(key, self.heads)
        return weights(query, key, mask & reach)

    def step(self, x: Tensor, state: DecoderState, layer: int) -> Tensor:
        """Attend from one new position of each row to the row's prefix and itself.

        Args:
            x: (B, W, D).
            state: takes the new position's keys and values.
            layer: whose keys and values in the state these are.

        Returns:
            (B, W, D).
        """
        query, key, value = self.query_key_value(x).split(self.sizes, -1)
        keys, values = state.append(
            layer, heads_first(key, self.heads), heads_first(value, self.heads)
        )
        context = attend_step(query, keys, values, state.prefix_bias, self.heads)
        output: Tensor = self.output(context)
        return output

    def _attend_in_block(
        self, joint: Tensor, layout: Layout, is_causal: bool, dropout: float
    ) -> Tensor:
        """Attend from each token to its whole sequence: joint (X, H(2K+U)) -> (X, H, U)."""
        block = layout.unpack(joint)  # (B, T, H(2K+U))
        query, key, value = split_heads(block, self.heads, self.sizes)
        # Padding stands to the right, so the causal mask already hides it from every real token.
        mask = None if is_causal or layout.is_rectangular else layout.mask[:, None, None, :]
        context = attend(query, key, value, mask, is_causal, dropout)
        return layout.pack(context.transpose(1, 2))


class MemoryAttention(nn.Module):
    """Attention of target positions over the encoder's output."""

    def __init__(
        self, model_size: int, heads: int, key_size: int, value_size: int, dropout: float
    ) -> None:
        super().__init__()
        self.heads = heads
        self.sizes = (heads * key_size, heads * value_size)
        self.dropout = dropout
        self.query = Linear(model_size, heads * key_size)
        self.key_value = Linear(model_size, sum(self.sizes))
        self.output = Linear(heads * value_size, model_size)
        _initialise(self.query, (heads * key_size,))
        _initialise(self.key_value, self.sizes)
        _initialise(self.output, (model_size,))

    def forward(self, x: Tensor, layout: Layout, memory: Packed) -> Tensor:
        """Attend from each target sequence to its source sequence.

        Args:
            x: (Y, D) packed target positions.
            layout: their layout, B sequences.
            memory: (X, D) the encoder's output for the same B sentences.

        Returns:
            (Y, D).
        """
        query, joint = self.query(x), self.key_value(memory.values)  # (Y, HK), (X, H(K+U))
        dropout = self.dropout if self.training else 0.0
        sizes = (self.sizes[0] // self.heads, self.sizes[1] // self.heads)
        if flash.takes(query.device, query.dtype, sizes, dropout):
            key, value = (_by_head(side, self.heads) for side in joint.split(self.sizes, -1))
            layouts = (layout, memory.layout)
            context = flash.attend(
                _by_head(query, self.heads), key, value, layouts, flash.EVERYTHING
            )
        else:
            context = self._attend_in_block(query, joint, (layout, memory.layout), dropout)
        output: Tensor = self.output(context.flatten(1))
        return output

    def weights(self, x: Tensor, layout: Layout, memory: Packed) -> Tensor:
        """Compute how much each target position attends to each source position.

        Args:
            x, layout, memory: as for `forward`, which computes the same without keeping it.

        Returns:
            (B, H, T, S): a target token's weights sum to 1, and are 0 where its source has ended;
            rows of padding mean nothing.
        """
        query = heads_first(layout.unpack(self.query(x)), self.heads)
        keys, _ = self.keys_values(memory)
        return weights(query, heads_first(keys, self.heads), memory_mask(memory.layout))

    def keys_values(self, memory: Packed) -> tuple[Tensor, Tensor]:
        """Project the memory: keys (B, S, HK) and values (B, S, HU)."""
        keys, values = memory.layout.unpack(self.key_value(memory.values)).split(self.sizes, -1)
        return keys, values

    def start(self, memory: Packed) -> tuple[Tensor, Tensor]:
        """Project the memory as steps need it: scaled keys (B, H, K, S), values (B, H, S, U)."""
        pair = (part.to(memory.values.dtype) for part in self.keys_values(memory))
        keys, values = (heads_first(part, self.heads) for part in pair)
        return (keys * keys.shape[-1] ** -0.5).mT, values

    def step(self, x: Tensor, state: DecoderState, layer: int) -> Tensor:
        """Attend from one position (B, W, D) of each row, all rows of a sentence at once."""
        keys, values = state.memory(layer)
        context = attend_step(self.query(x), keys, values, state.memory_bias, self.heads)
        output: Tensor = self.output(context)
        return output

    def _attend_in_block(
        self, query: Tensor, joint: Tensor, layouts: tuple[Layout, Layout], dropout: float
    ) -> Tensor:
        """Attend to whole sequences: query (Y, HK), joint (X, H(K+U)) -> (Y, H, U)."""
        asking, asked = layouts
        (queries,) = split_heads(asking.unpack(query), self.heads, query.shape[1:])
        keys, values = split_heads(asked.unpack(joint), self.heads, self.sizes)
        mask = memory_mask(asked)
        context = attend(queries, keys, values, mask, is_causal=False, dropout=dropout)
        return asking.pack(context.transpose(1, 2))


@contextmanager
def recorded_weights(attention: SelfAttention | MemoryAttention) -> Iterator[list[Tensor]]:
    """Record the weights (B, H, T, S) of each pass through an attention within the context.

    They are computed beside the pass, which itself stays as it is: no other has to pay for them.
    """
    recorded: list[Tensor] = []

    def record(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        recorded.append(attention.weights(*arguments, **named))

    handle = attention.register_forward_pre_hook(record, with_kwargs=True)
    try:
        yield recorded
    finally:
        handle.remove()


def memory_mask(layout: Layout) -> Tensor | None:
    """(B, 1, 1, S) True where a source token stands; None where there is no padding to hide."""
    return None if layout.is_rectangular else layout.mask[:, None, None, :]


def attend_step(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor, heads: int) -> Tensor:
    """Attend from one position of each row: softmax(Q K^T + bias) V, the keys being scaled.

    For so few queries these products are several times as fast on a CPU as torch's own attention.

    Args:
        query: (B, W, HK).
        keys: (BH, K, C) of C positions, times K^-1/2.
        values: (BH, C, U).
        bias: (BH, W or 1, C) what is added to the scores: 0, or -inf where nothing is attended to.
        heads: H.

    Returns:
        (B, W, HU).
    """
    sentences, width, _ = query.shape
    # (B, W, HK) -> (BH, W, K); what is low in precision is made equal to the keys on the way.
    rows = heads_first(query, heads).to(keys.dtype, memory_format=torch.contiguous_format)
    scores = torch.bmm(rows.flatten(0, 1), keys).add_(bias)
    context = torch.bmm(scores.softmax(-1), values)  # (BH, W, U)
    return context.view(sentences, heads, width, -1).transpose(1, 2).flatten(2)


def _by_head(packed: Tensor, heads: int) -> Tensor:
    """(X, H*K) -> (X, H, K), a view."""
    return packed.view(packed.shape[0], heads, -1)


def _initialise(linear: nn.Linear, sizes: tuple[int, ...]) -> None:
    """Xavier-uniform for each of the projections that share one matrix; biases 0."""
    for part in linear.weight.detach().split(sizes):
        nn.init.xavier_uniform_(part)
    torch.nn.init.zeros_(linear.bias)
