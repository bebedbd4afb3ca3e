"""Scaled dot-product attention over padded blocks, softmax(Q K^T / sqrt(K)) V.

Source: paper, equation 1. Shapes: B sentences; H heads; T queries and S keys of a sentence; K, U
key and value size of a head.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels.training import (
    apply_dropout_mask,
    draw_dropout_mask,
    is_low_precision_on_cpu,
)

MAX_STORED_WEIGHTS = 320 * 320
"""Largest T times S for which training in low precision on a CPU stores the attention weights.

torch's own attention recomputes them. In low precision on a CPU its backward pass takes ten times
as long at 40 tokens. For longer sequences it is as fast and needs less memory. Without a backward
pass, and in float32, it is as fast at every length.
"""


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, dropout: float
) -> Tensor:
    """Attend from queries to keys, for all heads.

    Args:
        query: (B, H, T, K).
        key: (B, H, S, K).
        value: (B, H, S, U).
        mask: of two dimensions at least, broadcast to (B, H, T, S), True where a query may attend;
            None = everywhere.
        is_causal: a position attends to itself and those before it; the mask is None then.
        dropout: of the attention weights.

    Returns:
        (B, H, T, U).
    """
    size = (query.shape[2], key.shape[2])
    if not _is_trained_in_low_precision(query) or math.prod(size) > MAX_STORED_WEIGHTS:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
        )
    if is_causal:
        mask = torch.ones(size, dtype=torch.bool).tril()
    context: Tensor = _MathAttention.apply(query, key, value, mask, dropout)  # type: ignore[no-untyped-call]
    return context


def weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Compute softmax(Q K^T / sqrt(K)): (B, H, T, S); arguments as for `attend`.

    The softmax is in float32, or in float64 if the scores are.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))


def split_heads(block: Tensor, heads: int, sizes: tuple[int, ...]) -> Sequence[Tensor]:
    """Split a padded block into queries, keys and values for `attend`, or some of these.

    Args:
        block: (B, T, sum of sizes).
        heads: H.
        sizes: of the parts, H times the size of a head each.

    Returns:
        (B, H, T, K or U) each: views, or contiguous copies in low-precision training on a CPU.
    """
    if _is_trained_in_low_precision(block):
        parts: Sequence[Tensor] = _SplitHeads.apply(block, heads, sizes)  # type: ignore[no-untyped-call]
        return parts
    return [heads_first(part, heads) for part in block.split(sizes, -1)]


def heads_first(block: Tensor, heads: int) -> Tensor:
    """(B, T, H*K) -> (B, H, T, K), a view."""
    return block.view(*block.shape[:2], heads, -1).transpose(1, 2)


def _is_trained_in_low_precision(x: Tensor) -> bool:
    return is_low_precision_on_cpu(x.device, x.dtype) and x.requires_grad


class _MathAttention(torch.autograd.Function):
    """Attention by plain products; saves its arguments and weights for the backward pass.

    Autograd would save three copies of the weights, and one of each argument.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float
    ) -> Tensor:
        queries, keys, values = (part.flatten(0, 1) for part in (query, key, value))
        bias = _additive_mask(mask, queries, query.shape[:2])
        scores = torch.baddbmm(bias, queries, keys.mT, alpha=query.shape[-1] ** -0.5)
        weights = scores.softmax(-1)
        is_kept = draw_dropout_mask(weights.shape, dropout) if dropout else None
        ctx.dropout = dropout
        ctx.save_for_backward(query, key, value, weights, is_kept)
        context: Tensor = _with_dropout(weights, is_kept, dropout) @ values
        return context.view(*query.shape[:-1], value.shape[-1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        *saved, weights, is_kept = ctx.saved_tensors
        queries, keys, values, grad_context = (part.flatten(0, 1) for part in (*saved, gradient))
        grad_values = _with_dropout(weights, is_kept, ctx.dropout).mT @ grad_context
        grad_weights = _with_dropout(grad_context @ values.mT, is_kept, ctx.dropout)
        # Autograd's own function: in low precision it sums in float32, without a copy in float32.
        grad_scores = torch.ops.aten._softmax_backward_data(
            grad_weights, weights, -1, weights.dtype
        )
        unused, scale = keys.new_empty(1), queries.shape[-1] ** -0.5  # beta=0 ignores its values
        grad_queries = torch.baddbmm(unused, grad_scores, keys, beta=0, alpha=scale)
        grad_keys = torch.baddbmm(unused, grad_scores.mT, queries, beta=0, alpha=scale)
        grad_queries, grad_keys, grad_values = (
            product.unflatten(0, gradient.shape[:2])
            for product in (grad_queries, grad_keys, grad_values)
        )
        return grad_queries, grad_keys, grad_values, None, None


def _additive_mask(mask: Tensor | None, like: Tensor, heads: torch.Size) -> Tensor:
    """Return the mask as numbers to add to scores (BH, T, S): 0, or -inf where it is False."""
    if mask is None:
        return like.new_zeros(1)
    bias = torch.zeros_like(mask, dtype=like.dtype).masked_fill_(~mask, -math.inf)
    return bias if bias.dim() == 2 else bias.expand(*heads, *bias.shape[-2:]).flatten(0, 1)


def _with_dropout(weights: Tensor, is_kept: Tensor | None, dropout: float) -> Tensor:
    return weights if is_kept is None else apply_dropout_mask(weights, is_kept, dropout)


class _SplitHeads(torch.autograd.Function):
    """Copies queries, keys and values by head, and writes their gradients into one block.

    Autograd would copy each gradient, and then the block.
    """

    @staticmethod
    def forward(ctx: Any, block: Tensor, heads: int, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
        ctx.heads, ctx.sizes = heads, sizes
        return tuple(heads_first(part, heads).contiguous() for part in block.split(sizes, -1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        sentences, _, length, _ = gradients[0].shape
        whole = gradients[0].new_empty(sentences, length, sum(ctx.sizes))
        for part, gradient in zip(whole.split(ctx.sizes, -1), gradients, strict=True):
            heads_first(part, ctx.heads).copy_(gradient)
        return whole, None, None
