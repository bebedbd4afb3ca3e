"""Layers of encoder and decoder: attention and feed-forward, each in a residual connection.

Source: paper, sections 3.1 and 3.3. A layer receives its attentions as functions, so the same code
runs over packed sequences and over single steps. What follows attention is the residual tail: two
functions of packed tokens, which training may compile.

Shapes: X, Y packed source, target tokens; B sentences; W rows of a sentence; D model size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.config.training import ModelConfig
from nmtkit.model.attention import CrossAttention, SelfAttention, initialize
from nmtkit.model.kernels.training import Dropout, Linear
from nmtkit.model.state import StepState

Function = Callable[[Tensor], Tensor]


class Residual(nn.Module):
    """The dropout and residual connection of a sub-layer. Source: paper, sections 3.1 and 5.4.

    The output of a sub-layer with the function f is `leave(x, f(enter(x)))`. Subclasses add the
    LayerNorm.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = layer_norm(config)
        self.dropout = Dropout(config.dropout)

    def enter(self, x: Tensor) -> Tensor:
        """Return the argument of f for x (..., D)."""
        return x

    def leave(self, x: Tensor, result: Tensor) -> Tensor:
        """Add the result of f to x (..., D)."""
        return cast(Tensor, x + self.dropout(result))


class PostNorm(Residual):
    """LayerNorm(x + Dropout(f(x))), as in the paper."""

    def leave(self, x: Tensor, result: Tensor) -> Tensor:
        """Add, then normalise."""
        return cast(Tensor, self.norm(super().leave(x, result)))


class PreNorm(Residual):
    """x + Dropout(f(LayerNorm(x))). Source: Wang et al. 2019 (arXiv 1906.01787)."""

    def enter(self, x: Tensor) -> Tensor:
        """Normalise x (..., D)."""
        return cast(Tensor, self.norm(x))


NORMS: dict[str, Callable[[ModelConfig], Residual]] = {"post": PostNorm, "pre": PreNorm}
"""Positions of LayerNorm; `NORMS` in nmtkit/config/training.py has their properties."""

ACTIVATIONS: dict[str, Function] = {"relu": F.relu, "silu": F.silu}
"""Activations; `ACTIVATIONS` in nmtkit/config/training.py has their properties."""


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or with another activation. Source: paper, section 3.3."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = Linear(config.model_size, config.feed_forward_size)
        self.outer = Linear(config.feed_forward_size, config.model_size)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.activation_dropout)
        initialize(self.inner, (config.feed_forward_size,))
        initialize(self.outer, (config.model_size,))

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position of (..., D) independently."""
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return output


def add_and_norm(residual: Residual, x: Tensor, context: Tensor) -> Tensor:
    """Add the output of an attention, `context`, to x, both (tokens, D); post-norm normalises."""
    return residual.leave(x, context)


def add_norm_feed_forward(
    residuals: tuple[Residual, Residual], feed_forward: FeedForward, x: Tensor, context: Tensor
) -> Tensor:
    """Add the output of a layer's last attention to x, then apply feed-forward in its residual.

    Args:
        residuals: of that attention, and of feed-forward.
        feed_forward: of the layer.
        x: (tokens, D).
        context: (tokens, D), the output of the attention.

    Returns:
        (tokens, D).
    """
    attention_residual, feed_forward_residual = residuals
    x = attention_residual.leave(x, context)
    return feed_forward_residual.leave(x, feed_forward(feed_forward_residual.enter(x)))


@dataclass(frozen=True)
class ResidualTail:
    """The functions that follow the attentions of a layer, eager or compiled."""

    add_and_norm: Callable[[Residual, Tensor, Tensor], Tensor]
    add_norm_feed_forward: Callable[
        [tuple[Residual, Residual], FeedForward, Tensor, Tensor], Tensor
    ]


EAGER = ResidualTail(add_and_norm, add_norm_feed_forward)


class Layer(nn.Module):
    """Base of encoder and decoder layers."""

    def __init__(self, tail: ResidualTail) -> None:
        """Store the residual tail of training; evaluation uses `EAGER`."""
        super().__init__()
        self._tail = tail

    @property
    def tail(self) -> ResidualTail:
        """The residual tail of the current mode."""
        return self._tail if self.training else EAGER


class EncoderLayer(Layer):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig, tail: ResidualTail) -> None:
        super().__init__(tail)
        self.self_attention = SelfAttention(*_attention_shape(config), config.window)
        self.feed_forward = FeedForward(config)
        self.residuals = _residuals(config, 2)

    def forward(self, x: Tensor, attend_self: Function) -> Tensor:
        """Transform x (X, D)."""
        self_residual, feed_forward_residual = self.residuals
        context = attend_self(self_residual.enter(x))
        return self.tail.add_norm_feed_forward(
            (self_residual, feed_forward_residual), self.feed_forward, x, context
        )


class DecoderLayer(Layer):
    """Self-attention, cross-attention to the memory, then feed-forward."""

    def __init__(self, config: ModelConfig, tail: ResidualTail) -> None:
        super().__init__(tail)
        self.self_attention = SelfAttention(*_attention_shape(config), config.window)
        # This attribute names tensors in model files.
        self.memory_attention = CrossAttention(*_attention_shape(config))
        self.feed_forward = FeedForward(config)
        self.residuals = _residuals(config, 3)

    def forward(self, x: Tensor, attend_self: Function, attend_memory: Function) -> Tensor:
        """Transform x (Y, D), or (B, W, D) in a step."""
        self_residual, cross_residual, feed_forward_residual = self.residuals
        x = self.tail.add_and_norm(self_residual, x, attend_self(self_residual.enter(x)))
        context = attend_memory(cross_residual.enter(x))
        return self.tail.add_norm_feed_forward(
            (cross_residual, feed_forward_residual), self.feed_forward, x, context
        )


def step_layers(layers: Sequence[DecoderLayer], x: Tensor, state: StepState) -> Tensor:
    """Run the layers of a decoder over the new tokens (B, W or T, D) of a step."""
    for index, layer in enumerate(layers):
        x = layer(
            x,
            partial(layer.self_attention.step, state=state, layer=index),
            partial(layer.memory_attention.step, state=state, layer=index),
        )
    return x


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Return a new LayerNorm over the model size."""
    return nn.LayerNorm(config.model_size, eps=config.norm_epsilon)


def _attention_shape(config: ModelConfig) -> tuple[int, int, int, int, float]:
    """Return D, H, K, U and the dropout of attention."""
    return config.model_size, config.heads, *config.head_sizes, config.attention_dropout


def _residuals(config: ModelConfig, number: int) -> Sequence[Residual]:
    """Build the residual connections of a layer.

    The cast is for type checkers: a ModuleList hides the types of its modules.
    """
    residual = NORMS[config.norm]
    return cast(Sequence[Residual], nn.ModuleList(residual(config) for _ in range(number)))
