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

from nmtkit.model.kernels.dropout import draw_kept, keep
from nmtkit.model.kernels.low_precision import is_low_on_cpu

LARGEST_EXPLICIT = 320 * 320
"""Weights of a head, T times S, up to which a CPU keeps them for the backward pass.

torch's own attention computes them again. In low precision on a CPU its backward pass takes ten
times as long at 40 tokens. For longer sequences it is as fast and needs less memory. Without a
backward pass, and in float32, it is as fast at every length.
"""


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, dropout: float
) -> Tensor:
    """Attend from queries to keys, all heads at once.

    Args:
        query: (B, H, T, K).
        key: (B, H, S, K).
        value: (B, H, S, U).
        mask: of two dimensions at least, broadcast to (B, H, T, S), True where a query may attend;
            None = everywhere.
        is_causal: a position attends to itself and those before it; the mask is None then.
        dropout: of the weights.

    Returns:
        (B, H, T, U).
    """
    size = (query.shape[2], key.shape[2])
    if not _is_trained_in_low_precision(query) or math.prod(size) > LARGEST_EXPLICIT:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
        )
    if is_causal:
        mask = torch.ones(size, dtype=torch.bool).tril()
    context: Tensor = _Explicit.apply(query, key, value, mask, dropout)  # type: ignore[no-untyped-call]
    return context


def weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Compute softmax(Q K^T / sqrt(K)): (B, H, T, S); arguments as for `attend`."""
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
        (B, H, T, K) each: views; in training in low precision on a CPU, copies for plain products.
    """
    if _is_trained_in_low_precision(block):
        sides: Sequence[Tensor] = _SplitHeads.apply(block, heads, sizes)  # type: ignore[no-untyped-call]
        return sides
    return [heads_first(side, heads) for side in block.split(sizes, -1)]


def heads_first(block: Tensor, heads: int) -> Tensor:
    """(B, T, H*K) -> (B, H, T, K), a view."""
    return block.view(*block.shape[:2], heads, -1).transpose(1, 2)


def _is_trained_in_low_precision(x: Tensor) -> bool:
    return is_low_on_cpu(x.device, x.dtype) and x.requires_grad


class _Explicit(torch.autograd.Function):
    """Attention by plain products, which keeps its arguments and weights for the backward pass.

    Autograd would keep three copies of the weights, and one of each argument.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float
    ) -> Tensor:
        queries, keys, values = (side.flatten(0, 1) for side in (query, key, value))
        bias = _bias(mask, queries, query.shape[:2])
        scores = torch.baddbmm(bias, queries, keys.mT, alpha=query.shape[-1] ** -0.5)
        kept_weights = scores.softmax(-1)
        kept = draw_kept(kept_weights.shape, dropout) if dropout else None
        ctx.dropout = dropout
        ctx.save_for_backward(query, key, value, kept_weights, kept)
        context: Tensor = _dropped(kept_weights, kept, dropout) @ values
        return context.view(*query.shape[:-1], value.shape[-1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        *sides, kept_weights, kept = ctx.saved_tensors
        queries, keys, values, pulls = (side.flatten(0, 1) for side in (*sides, gradient))
        of_values = _dropped(kept_weights, kept, ctx.dropout).mT @ pulls
        of_weights = _dropped(pulls @ values.mT, kept, ctx.dropout)
        # Autograd's own function: in low precision it sums in float32, without a copy in float32.
        of_scores = torch.ops.aten._softmax_backward_data(
            of_weights, kept_weights, -1, kept_weights.dtype
        )
        nothing, scale = keys.new_empty(1), queries.shape[-1] ** -0.5
        of_queries = torch.baddbmm(nothing, of_scores, keys, beta=0, alpha=scale)
        of_keys = torch.baddbmm(nothing, of_scores.mT, queries, beta=0, alpha=scale)
        of_queries, of_keys, of_values = (
            product.unflatten(0, gradient.shape[:2]) for product in (of_queries, of_keys, of_values)
        )
        return of_queries, of_keys, of_values, None, None


def _bias(mask: Tensor | None, like: Tensor, heads: torch.Size) -> Tensor:
    """Return the mask as numbers to add to scores (BH, T, S): 0, or -inf where it is False."""
    if mask is None:
        return like.new_zeros(1)
    bias = torch.zeros_like(mask, dtype=like.dtype).masked_fill_(~mask, -math.inf)
    return bias if bias.dim() == 2 else bias.expand(*heads, *bias.shape[-2:]).flatten(0, 1)


def _dropped(of_weights: Tensor, kept: Tensor | None, dropout: float) -> Tensor:
    return of_weights if kept is None else keep(of_weights, kept, dropout)


class _SplitHeads(torch.autograd.Function):
    """Heads laid out for products; the gradients are written into one block directly.

    Autograd would copy each of them, and then the block.
    """

    @staticmethod
    def forward(ctx: Any, block: Tensor, heads: int, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
        ctx.heads, ctx.sizes = heads, sizes
        return tuple(heads_first(side, heads).contiguous() for side in block.split(sizes, -1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        sentences, _, length, _ = gradients[0].shape
        whole = gradients[0].new_empty(sentences, length, sum(ctx.sizes))
        for side, gradient in zip(whole.split(ctx.sizes, -1), gradients, strict=True):
            heads_first(side, ctx.heads).copy_(gradient)
        return whole, None, None
