"""Layers of encoder and decoder: residual sub-layers around attention and feed-forward.

Source: paper, sections 3.1 and 3.3. A layer does not know whether it runs over whole packed
sequences or over one step: its attention comes in as a function, so there is one path for both.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.config.training import ModelConfig
from nmtkit.model.attention import MemoryAttention, SelfAttention
from nmtkit.model.dropout import Dropout

Function = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Function] = {"relu": F.relu, "silu": F.silu}


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or another activation than this. Source: paper, equation 2."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.model_size, config.feed_forward_size)
        self.outer = nn.Linear(config.feed_forward_size, config.model_size)
        self.activation = _ACTIVATIONS[config.activation]
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

    post: LayerNorm(x + Dropout(f(x))), the paper's; pre: x + Dropout(f(LayerNorm(x))).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = layer_norm(config)
        self.dropout = Dropout(config.dropout)
        self.is_post = config.norm == "post"

    def forward(self, x: Tensor, function: Function) -> Tensor:
        """Apply the function to x (..., D) within its residual connection."""
        output: Tensor = (
            self.norm(x + self.dropout(function(x)))
            if self.is_post
            else x + self.dropout(function(self.norm(x)))
        )
        return output


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(*attention_shape(config), config.window)
        self.feed_forward = FeedForward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x: Tensor, attend_self: Function) -> Tensor:
        """Transform x (X, D)."""
        x = self.residuals[0](x, attend_self)
        output: Tensor = self.residuals[1](x, self.feed_forward)
        return output


class DecoderLayer(nn.Module):
    """Self-attention, attention over the memory, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(*attention_shape(config), config.window)
        self.memory_attention = MemoryAttention(*attention_shape(config))
        self.feed_forward = FeedForward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(self, x: Tensor, attend_self: Function, attend_memory: Function) -> Tensor:
        """Transform x (Y, D), or (B, W, D) in a step."""
        x = self.residuals[0](x, attend_self)
        x = self.residuals[1](x, attend_memory)
        output: Tensor = self.residuals[2](x, self.feed_forward)
        return output


def attention_shape(config: ModelConfig) -> tuple[int, int, int, int, float]:
    """Return D, H, K, U and the dropout of attention; a size of 0 means D / H."""
    own = config.model_size // config.heads
    key_size, value_size = config.key_size or own, config.value_size or own
    return config.model_size, config.heads, key_size, value_size, config.attention_dropout


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Make a LayerNorm over the model size."""
    return nn.LayerNorm(config.model_size, eps=config.norm_epsilon)
