"""Layers of encoder and decoder: attention and feed-forward, each in a residual connection.

Source: paper, sections 3.1 and 3.3. A layer receives its attentions as functions, so the same code
runs over packed sequences and over single steps.

Shapes: X, Y packed source, target tokens; B sentences; W rows of a sentence; D model size.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.config.model import ModelConfig
from nmtkit.model.attention import CrossAttention, SelfAttention, initialize
from nmtkit.model.kernels.training import Dropout, Linear

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
"""Positions of LayerNorm; `NORMS` in nmtkit/config/model.py has their properties."""


def squared_relu(x: Tensor) -> Tensor:
    """Compute max(0, x)^2. Source: So et al. 2021 (arXiv 2109.08668), section 3."""
    return F.relu(x).square()


def swiglu(x: Tensor) -> Tensor:
    """Multiply the second half of x (..., 2F) by silu of the first: (..., F).

    Source: Shazeer 2020 (arXiv 2002.05202), equation 6.
    """
    gate, value = x.chunk(2, -1)
    return F.silu(gate) * value


ACTIVATIONS: dict[str, Function] = {
    "relu": F.relu,
    "silu": F.silu,
    "squared-relu": squared_relu,
    "swiglu": swiglu,
}
"""Activations; `ACTIVATIONS` in nmtkit/config/model.py has their properties."""


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or with another activation. Source: paper, section 3.3."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = Linear(config.model_size, sum(config.inner_sizes))
        self.outer = Linear(config.feed_forward_size, config.model_size)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.activation_dropout)
        initialize(self.inner, config.inner_sizes)
        initialize(self.outer, (config.model_size,))

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position of (..., D) independently."""
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return output


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.feed_forward = FeedForward(config)
        self.residuals = _residuals(config, 2)

    def forward(self, x: Tensor, attend_self: Function) -> Tensor:
        """Transform x (X, D)."""
        return _in_residuals(self.residuals, (attend_self, self.feed_forward), x)


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention to the memory, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        # This attribute names tensors in model files.
        self.memory_attention = CrossAttention(config)
        self.feed_forward = FeedForward(config)
        self.residuals = _residuals(config, 3)

    def forward(self, x: Tensor, attend_self: Function, attend_memory: Function) -> Tensor:
        """Transform x (Y, D), or (B, W, D) in a step."""
        return _in_residuals(self.residuals, (attend_self, attend_memory, self.feed_forward), x)


def _in_residuals(
    residuals: Sequence[Residual], functions: Sequence[Function], x: Tensor
) -> Tensor:
    """Apply functions to x (..., D), one after the other, each in its residual connection."""
    for residual, function in zip(residuals, functions, strict=True):
        x = residual.leave(x, function(residual.enter(x)))
    return x


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Return a new LayerNorm over the model size."""
    return nn.LayerNorm(config.model_size, eps=config.norm_epsilon)


def _residuals(config: ModelConfig, number: int) -> Sequence[Residual]:
    """Build the residual connections of a layer.

    The cast is for type checkers: a ModuleList hides the types of its modules.
    """
    residual = NORMS[config.norm]
    return cast(Sequence[Residual], nn.ModuleList(residual(config) for _ in range(number)))
