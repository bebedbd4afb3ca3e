"""Multi-head attention. Source: paper, section 3.2.

Self-attention of encoder and decoder is one class, with and without the causal mask; attention of
the decoder over the encoder's output, here called memory, is the other. Each projects, attends and
projects, in two forms: `forward` over packed sequences, and `step` over one position per row for
decoding. How attention is computed is the business of `nmtkit/model/kernels/`.

Shapes: X, Y packed source, target tokens; B sentences; W rows of a sentence; T, S longest target,
source; D model size; H heads; K, U key and value size of a head.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from nmtkit.model.kernels.attend import Projection, attend, attend_step, attention_weights
from nmtkit.model.kernels.low_precision import Linear
from nmtkit.model.kernels.padded import heads_first
from nmtkit.model.kernels.reach import EVERYTHING, neighborhood
from nmtkit.model.state import DecoderState
from nmtkit.packed import Layout, Packed


class SelfAttention(nn.Module):
    """Attention of a sequence over itself, its three projections in one matrix.

    A window restricts it to a neighbourhood. Source: paper, section 4.
    """

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
        initialize(self.query_key_value, self.sizes)
        initialize(self.output, (model_size,))

    def forward(self, x: Tensor, layout: Layout, is_causal: bool) -> Tensor:
        """Attend within each sequence.

        Args:
            x: (X, D) packed sequences.
            layout: where each begins and ends.
            is_causal: a position attends to itself and those before it only.

        Returns:
            (X, D).
        """
        reach = neighborhood(self.window, is_causal, layout.longest)
        dropout = self.dropout if self.training else 0.0
        context = attend(self._project(x, layout), self.heads, reach, dropout)  # (X, HU)
        output: Tensor = self.output(context)
        return output

    def step(self, x: Tensor, state: DecoderState, layer: int) -> Tensor:
        """Attend from one new position of each row to the row's prefix and itself.

        Args:
            x: (B, W, D).
            state: stores the new position's keys and values.
            layer: whose keys and values in the state these are.

        Returns:
            (B, W, D).
        """
        query, key, value = self.query_key_value(x).split(self.sizes, -1)
        keys, values = state.append(
            layer, heads_first(key, self.heads), heads_first(value, self.heads)
        )
        context = attend_step(query, keys, values, state.prefix_bias, self.heads)  # (B, W, HU)
        output: Tensor = self.output(context)
        return output

    def weights(self, x: Tensor, layout: Layout, is_causal: bool) -> Tensor:
        """Compute the attention weights (B, H, T, T) of `forward`, whose arguments these are."""
        reach = neighborhood(self.window, is_causal, layout.longest)
        return attention_weights(self._project(x, layout), self.heads, reach)

    def _project(self, x: Tensor, layout: Layout) -> tuple[Projection]:
        return (Projection(self.query_key_value(x), layout, self.sizes),)


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
        initialize(self.query, (heads * key_size,))
        initialize(self.key_value, self.sizes)
        initialize(self.output, (model_size,))

    def forward(self, x: Tensor, layout: Layout, memory: Packed) -> Tensor:
        """Attend from each target sequence to its source sequence.

        Args:
            x: (Y, D) packed target positions.
            layout: their layout, B sequences.
            memory: (X, D) the encoder's output for the same B sentences.

        Returns:
            (Y, D).
        """
        dropout = self.dropout if self.training else 0.0
        projections = self._project(x, layout, memory)
        context = attend(projections, self.heads, EVERYTHING, dropout)  # (Y, HU)
        output: Tensor = self.output(context)
        return output

    def start(self, memory: Packed) -> tuple[Tensor, Tensor]:
        """Project the memory as steps need it: scaled keys (B, H, K, S), values (B, H, S, U)."""
        block = memory.layout.unpack(self.key_value(memory.values))  # (B, S, H(K+U))
        keys, values = (
            heads_first(side.to(memory.values.dtype), self.heads)
            for side in block.split(self.sizes, -1)
        )
        return (keys * keys.shape[-1] ** -0.5).mT, values

    def step(self, x: Tensor, state: DecoderState, layer: int) -> Tensor:
        """Attend from one position (B, W, D) of each row to its source sequence."""
        keys, values = state.memory(layer)
        context = attend_step(self.query(x), keys, values, state.memory_bias, self.heads)
        output: Tensor = self.output(context)
        return output

    def weights(self, x: Tensor, layout: Layout, memory: Packed) -> Tensor:
        """Compute the attention weights (B, H, T, S) of `forward`, whose arguments these are."""
        return attention_weights(self._project(x, layout, memory), self.heads, EVERYTHING)

    def _project(self, x: Tensor, layout: Layout, memory: Packed) -> tuple[Projection, Projection]:
        query = Projection(self.query(x), layout, self.sizes[:1])
        return query, Projection(self.key_value(memory.values), memory.layout, self.sizes)


@contextmanager
def recorded_weights(attention: SelfAttention | MemoryAttention) -> Iterator[list[Tensor]]:
    """Record the weights (B, H, T, S) of each pass through an attention within the context.

    They are computed next to the pass, which itself stays unchanged and pays nothing elsewhere.
    """
    recorded: list[Tensor] = []

    def record(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        recorded.append(attention.weights(*arguments, **named))

    handle = attention.register_forward_pre_hook(record, with_kwargs=True)
    try:
        yield recorded
    finally:
        handle.remove()


def initialize(linear: nn.Linear, sizes: tuple[int, ...]) -> None:
    """Xavier-uniform for each of the projections that share one matrix; biases 0."""
    for part in linear.weight.detach().split(sizes):
        nn.init.xavier_uniform_(part)
    nn.init.zeros_(linear.bias)
