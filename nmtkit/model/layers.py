"""Layers of encoder and decoder: residual sub-layers around attention and feed-forward.

Source: paper, sections 3.1 and 3.3. A layer does not know whether it runs over whole packed
sequences or over one step: its attention comes in as a function, so there is one path for both.
The rest of a layer is its residual tail, two functions of packed tokens: training may compile them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.config.training import ModelConfig
from nmtkit.model.attention import MemoryAttention, SelfAttention
from nmtkit.model.kernels.dropout import Dropout
from nmtkit.model.kernels.low_precision import Linear

Function = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Function] = {"relu": F.relu, "silu": F.silu}
"""Activations; `ACTIVATIONS` in nmtkit/config/training.py has their facts."""


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or another activation than this. Source: paper, equation 2."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = Linear(config.model_size, config.feed_forward_size)
        self.outer = Linear(config.feed_forward_size, config.model_size)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.activation_dropout)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position (..., D) alone."""
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return output


class Residual(nn.Module):
    """A sub-layer's dropout, residual connection and LayerNorm. Source: paper, sections 3.1, 5.4.

    The sub-layer computes `leave(x, f(enter(x)))` for its function f.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = layer_norm(config)
        self.dropout = Dropout(config.dropout)

    def enter(self, x: Tensor) -> Tensor:
        """Return the argument of f for x (..., D)."""
        raise NotImplementedError

    def leave(self, x: Tensor, result: Tensor) -> Tensor:
        """Add the result of f to x (..., D)."""
        raise NotImplementedError


class PostNorm(Residual):
    """LayerNorm(x + Dropout(f(x))), as in the paper."""

    def enter(self, x: Tensor) -> Tensor:
        """Return x."""
        return x

    def leave(self, x: Tensor, result: Tensor) -> Tensor:
        """Add, then normalise."""
        return cast(Tensor, self.norm(x + self.dropout(result)))


class PreNorm(Residual):
    """x + Dropout(f(LayerNorm(x))). Source: Wang et al. 2019 (arXiv 1906.01787)."""

    def enter(self, x: Tensor) -> Tensor:
        """Normalise x (..., D)."""
        return cast(Tensor, self.norm(x))

    def leave(self, x: Tensor, result: Tensor) -> Tensor:
        """Add."""
        return cast(Tensor, x + self.dropout(result))


NORMS: dict[str, Callable[[ModelConfig], Residual]] = {"post": PostNorm, "pre": PreNorm}
"""Places of LayerNorm; `NORMS` in nmtkit/config/training.py has their facts."""


def add_and_norm(residual: Residual, x: Tensor, context: Tensor) -> Tensor:
    """Add the result of an attention, both (tokens, D), before the next attention."""
    return residual.leave(x, context)


def add_norm_feed_forward(
    residuals: tuple[Residual, Residual], feed_forward: FeedForward, x: Tensor, context: Tensor
) -> Tensor:
    """Add the result of a layer's last attention, both (tokens, D), and apply feed-forward."""
    attended, fed = residuals
    x = attended.leave(x, context)
    return fed.leave(x, feed_forward(fed.enter(x)))


@dataclass(frozen=True)
class ResidualTail:
    """The functions that follow the attentions of a layer: those above, or compiled ones."""

    add_and_norm: Callable[[Residual, Tensor, Tensor], Tensor]
    add_norm_feed_forward: Callable[
        [tuple[Residual, Residual], FeedForward, Tensor, Tensor], Tensor
    ]


EAGER = ResidualTail(add_and_norm, add_norm_feed_forward)


class Layer(nn.Module):
    """The common part of encoder and decoder layers."""

    def __init__(self, tail: ResidualTail) -> None:
        """Store the residual tail for training; evaluation uses `EAGER`."""
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
        self.self_attention = SelfAttention(*attention_shape(config), config.window)
        self.feed_forward = FeedForward(config)
        self.residuals = _residuals(config, 2)

    def forward(self, x: Tensor, attend_self: Function) -> Tensor:
        """Transform x (X, D)."""
        attended, fed = self.residuals
        context = attend_self(attended.enter(x))
        return self.tail.add_norm_feed_forward((attended, fed), self.feed_forward, x, context)


class DecoderLayer(Layer):
    """Self-attention, attention over the memory, then feed-forward."""

    def __init__(self, config: ModelConfig, tail: ResidualTail) -> None:
        super().__init__(tail)
        self.self_attention = SelfAttention(*attention_shape(config), config.window)
        self.memory_attention = MemoryAttention(*attention_shape(config))
        self.feed_forward = FeedForward(config)
        self.residuals = _residuals(config, 3)

    def forward(self, x: Tensor, attend_self: Function, attend_memory: Function) -> Tensor:
        """Transform x (Y, D), or (B, W, D) in a step."""
        own, attended, fed = self.residuals
        x = self.tail.add_and_norm(own, x, attend_self(own.enter(x)))
        context = attend_memory(attended.enter(x))
        return self.tail.add_norm_feed_forward((attended, fed), self.feed_forward, x, context)


def attention_shape(config: ModelConfig) -> tuple[int, int, int, int, float]:
    """Return D, H, K, U and the dropout of attention; a size of 0 means D / H."""
    own = config.model_size // config.heads
    key_size, value_size = config.key_size or own, config.value_size or own
    return config.model_size, config.heads, key_size, value_size, config.attention_dropout


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Make a LayerNorm over the model size."""
    return nn.LayerNorm(config.model_size, eps=config.norm_epsilon)


def _residuals(config: ModelConfig, number: int) -> Sequence[Residual]:
    """Build a layer's residual connections; a ModuleList hides its types from type checkers."""
    residual = NORMS[config.norm]
    return cast(Sequence[Residual], nn.ModuleList(residual(config) for _ in range(number)))
