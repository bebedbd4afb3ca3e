"""Multi-head attention. Source: paper, section 3.2.

`SelfAttention` serves encoder and decoder, without and with the causal mask. `CrossAttention`
attends from the decoder to the memory, the output of the encoder. `forward` runs over packed
sequences; `step` decodes one position per row. `nmtkit/model/kernels/` computes attention itself.

Shapes: X, Y packed source, target tokens; B sentences; W rows of a sentence; T, S longest target,
source; D model size; H heads; K, U key and value size of a head.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from nmtkit.config.model import POSITIONS, AligningAttention, ModelConfig, aligning_layer
from nmtkit.model.embedding import SinusoidalPositions
from nmtkit.model.kernels.attend import (
    FULL,
    Projection,
    attend,
    attend_step,
    attention_weights,
    heads_first,
    self_attention_window,
)
from nmtkit.model.kernels.training import Linear
from nmtkit.model.state import DecoderState, stored_dtype
from nmtkit.packed import Layout, Packed


def aligning_attention(config: ModelConfig, stored: AligningAttention | None) -> AligningAttention:
    """Return where alignments are read: the trained head, or else the mean of heads of a layer.

    Args:
        config: the model's shape, which names a trained head.
        stored: what `nmtkit align --choose-layer` stored; None = nothing: `aligning_layer` is read.
    """
    if config.trained_head is not None:
        is_full = config.full_context_alignment
        return AligningAttention(*config.trained_head, is_shifted=is_full, sees_target=is_full)
    default = AligningAttention(aligning_layer(config.decoder_layers), head=None, is_shifted=False)
    return stored or default


class HeadNorm(nn.Module):
    """LayerNorm of each head of queries or of keys, which bounds their products.

    Source: Dehghani et al. 2023 (arXiv 2302.05442), section 2.
    """

    def __init__(self, size: int) -> None:
        """Normalise heads of K elements."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the heads of x (..., HK)."""
        size = self.weight.shape[0]
        heads = x.unflatten(-1, (-1, size))
        if x.device.type != "cpu" or self.weight.dtype != torch.float32:
            # Only there may the types of both differ.
            heads = heads.to(self.weight.dtype)
        normalized = nn.functional.layer_norm(heads, (size,), self.weight)
        return normalized.to(x.dtype).flatten(-2)


class Rotation(nn.Module):
    """Rotates queries and keys by their positions, so that their products know distances.

    Channels 2i and 2i + 1 of a head are rotated by the angle pos / 10000^(2i/K). Source: Su et al.
    2021 (arXiv 2104.09864), section 3.2.2. Unlike there, embeddings have sinusoids, too: cross-
    attention, without rotation, needs them.
    """

    def __init__(self, size: int) -> None:
        """Rotate heads of K elements; K is even."""
        super().__init__()
        self.sinusoids = SinusoidalPositions(size)

    def forward(self, parts: Sequence[Tensor], positions: Tensor, longest: int) -> list[Tensor]:
        """Rotate the heads of each part (..., HK) at positions (...) below `longest`."""
        sines, cosines = self.sinusoids(positions, longest).chunk(2, -1)
        # Complex products are one pass over the heads, a third of the time of real ones.
        factors = torch.complex(cosines, sines)[..., None, :]  # (..., 1, K/2)
        return [_rotated(part, factors) for part in parts]


def _rotated(x: Tensor, factors: Tensor) -> Tensor:
    exact = x.to(torch.promote_types(x.dtype, torch.float32)).contiguous()
    numbers = torch.view_as_complex(exact.unflatten(-1, (-1, factors.shape[-1], 2)))
    return torch.view_as_real(numbers * factors).flatten(-3).to(x.dtype)


def query_and_key_norm(config: ModelConfig) -> tuple[nn.Module, nn.Module]:
    """Return norms of the heads of queries and of keys; both do nothing without QK-norm."""
    size, _ = config.head_sizes
    return (HeadNorm(size), HeadNorm(size)) if config.qk_norm else (nn.Identity(), nn.Identity())


def normalized_parts(projected: Tensor, sizes: Sequence[int], norms: Sequence[nn.Module]) -> Tensor:
    """Normalise the first parts of (..., sum of sizes), one by each norm, if the model does."""
    if isinstance(norms[0], nn.Identity):
        return projected
    parts = projected.split(sizes, -1)
    changed = [norm(part) for norm, part in zip(norms, parts, strict=False)]
    return torch.cat([*changed, *parts[len(norms) :]], -1)


class SelfAttention(nn.Module):
    """Attention of a sequence to itself, with its three projections in one matrix.

    A window limits it to neighbouring positions (0 = no limit). Source: paper, section 4.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        key_size, value_size = config.head_sizes
        self.heads = config.heads
        self.window = config.window
        self.sizes = (self.heads * key_size, self.heads * key_size, self.heads * value_size)
        self.dropout = config.attention_dropout
        self.query_key_value = Linear(config.model_size, sum(self.sizes))
        self.query_norm, self.key_norm = query_and_key_norm(config)
        self.rotation = Rotation(key_size) if POSITIONS[config.positions].is_rotary else None
        self.output = Linear(self.heads * value_size, config.model_size)
        initialize(self.query_key_value, self.sizes)
        initialize(self.output, (config.model_size,))

    def forward(self, x: Tensor, layout: Layout, is_causal: bool) -> Tensor:
        """Attend within each sequence.

        Args:
            x: (X, D) packed sequences.
            layout: of the sequences.
            is_causal: a position attends only to itself and to those before it.

        Returns:
            (X, D).
        """
        window = self_attention_window(self.window, is_causal, layout.longest)
        dropout = self.dropout if self.training else 0.0
        context = attend(self._project(x, layout), self.heads, window, dropout)  # (X, HU)
        output: Tensor = self.output(context)
        return output

    def step(self, x: Tensor, state: DecoderState, layer: int) -> Tensor:
        """Attend from one new position of each row to the row's prefix and itself.

        Args:
            x: (B, W, D).
            state: stores the keys and values of the new position.
            layer: index of the layer in the state.

        Returns:
            (B, W, D).
        """
        projected = self._queries_keys_values(x, state.position, state.length)
        query, key, value = projected.split(self.sizes, -1)
        keys, values = state.append(
            layer, heads_first(key, self.heads), heads_first(value, self.heads)
        )
        context = attend_step(query, keys, values, state.prefix_bias, self.heads)  # (B, W, HU)
        output: Tensor = self.output(context)
        return output

    def weights(self, x: Tensor, layout: Layout, is_causal: bool) -> Tensor:
        """Compute the attention weights (B, H, T, T) of `forward`; same arguments."""
        window = self_attention_window(self.window, is_causal, layout.longest)
        return attention_weights(self._project(x, layout), self.heads, window)

    def _project(self, x: Tensor, layout: Layout) -> tuple[Projection]:
        values = self._queries_keys_values(x, layout.positions, layout.longest)
        return (Projection(values, layout, self.sizes),)

    def _queries_keys_values(self, x: Tensor, positions: Tensor, longest: int) -> Tensor:
        """Project x at positions below `longest` to (..., H(2K+U)), normalised and rotated."""
        projected: Tensor = self.query_key_value(x)
        norms = self.query_norm, self.key_norm
        if self.rotation is None:
            return normalized_parts(projected, self.sizes, norms)
        query, key, value = projected.split(self.sizes, -1)
        normalized = [norm(part) for norm, part in zip(norms, (query, key), strict=True)]
        return torch.cat([*self.rotation(normalized, positions, longest), value], -1)


class CrossAttention(nn.Module):
    """Attention of the decoder to the memory, the output of the encoder.

    In layers the attribute is `memory_attention`, as it names tensors in model files.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        key_size, value_size = config.head_sizes
        self.heads = config.heads
        self.sizes = (self.heads * key_size, self.heads * value_size)
        self.dropout = config.attention_dropout
        self.query = Linear(config.model_size, self.heads * key_size)
        self.key_value = Linear(config.model_size, sum(self.sizes))
        self.query_norm, self.key_norm = query_and_key_norm(config)
        self.output = Linear(self.heads * value_size, config.model_size)
        initialize(self.query, self.sizes[:1])
        initialize(self.key_value, self.sizes)
        initialize(self.output, (config.model_size,))

    def forward(self, x: Tensor, layout: Layout, memory: Packed) -> Tensor:
        """Attend from each target sequence to its source sequence.

        Args:
            x: (Y, D) packed target positions.
            layout: of the B target sequences.
            memory: (X, D) of the same B sentences.

        Returns:
            (Y, D).
        """
        dropout = self.dropout if self.training else 0.0
        projections = self._project(x, layout, memory)
        context = attend(projections, self.heads, FULL, dropout)  # (Y, HU)
        output: Tensor = self.output(context)
        return output

    def start(self, memory: Packed) -> tuple[Tensor, Tensor]:
        """Project the memory for steps: scaled keys (B, H, K, S) and values (B, H, S, U)."""
        block = memory.layout.unpack(self._keys_and_values(memory))  # (B, S, H(K+U))
        dtype = stored_dtype(block, memory.values)
        keys, values = (
            heads_first(part.to(dtype), self.heads) for part in block.split(self.sizes, -1)
        )
        return (keys * keys.shape[-1] ** -0.5).mT, values

    def step(self, x: Tensor, state: DecoderState, layer: int) -> Tensor:
        """Attend from one position (B, W, D) of each row to its source sequence."""
        keys, values = state.memory(layer)
        query = self.query_norm(self.query(x))
        context = attend_step(query, keys, values, state.memory_bias, self.heads)
        output: Tensor = self.output(context)
        return output

    def weights(self, x: Tensor, layout: Layout, memory: Packed) -> Tensor:
        """Compute the attention weights (B, H, T, S) of `forward`; same arguments."""
        return attention_weights(self._project(x, layout, memory), self.heads, FULL)

    def log_weights(self, x: Tensor, layout: Layout, memory: Packed, head: int) -> Tensor:
        """Compute the logarithms of the weights of one head, in float32 or better.

        Args:
            x, layout, memory: as for `forward`.
            head: the head, from 0.

        Returns:
            (Y, S): a row per target position; -inf where the source sequence has no token.
        """
        size = self.sizes[0] // self.heads
        rows = slice(head * size, (head + 1) * size)
        query = self.query_norm(self.query.part(x, rows))
        key = self.key_norm(self.key_value.part(memory.values, rows))
        dtype = torch.promote_types(query.dtype, torch.float32)
        queries, keys = layout.unpack(query).to(dtype), memory.layout.unpack(key).to(dtype)
        with torch.autocast(x.device.type, enabled=False):
            scores = (queries * size**-0.5) @ keys.mT  # (B, T, K) and (B, S, K) -> (B, T, S)
        scores = scores.masked_fill(~memory.layout.mask[:, None], -math.inf)
        return layout.pack(scores.log_softmax(-1))

    def _project(self, x: Tensor, layout: Layout, memory: Packed) -> tuple[Projection, Projection]:
        query = Projection(self.query_norm(self.query(x)), layout, self.sizes[:1])
        return query, Projection(self._keys_and_values(memory), memory.layout, self.sizes)

    def _keys_and_values(self, memory: Packed) -> Tensor:
        """Project the memory to (X, H(K+U)), with normalised keys if the model has them."""
        return normalized_parts(self.key_value(memory.values), self.sizes, (self.key_norm,))


@contextmanager
def recorded_weights(attention: SelfAttention | CrossAttention) -> Iterator[list[Tensor]]:
    """Record the weights (B, H, T, S) of each forward pass of an attention within the context."""
    with recorded(attention, attention.weights) as weights:
        yield weights


@contextmanager
def recorded(
    attention: SelfAttention | CrossAttention, compute: Callable[..., Tensor]
) -> Iterator[list[Tensor]]:
    """Record what a function returns for each forward pass of an attention within the context.

    It is computed in addition to the pass, whose output stays the same.

    Args:
        attention: the attention.
        compute: has the arguments of its `forward`.
    """
    results: list[Tensor] = []

    def record(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        results.append(compute(*arguments, **named))

    handle = attention.register_forward_pre_hook(record, with_kwargs=True)
    try:
        yield results
    finally:
        handle.remove()


def initialize(linear: nn.Linear, sizes: tuple[int, ...]) -> None:
    """Initialise each projection of a joint matrix Xavier-uniform, and biases with 0."""
    for part in linear.weight.detach().split(sizes):
        nn.init.xavier_uniform_(part)
    nn.init.zeros_(linear.bias)
