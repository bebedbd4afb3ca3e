"""Scaled dot-product attention over padded blocks, softmax(Q K^T / sqrt(K)) V.

Source: paper, equation 1. Shapes: B sentences; H heads; T queries and S keys of a sentence; K, U
key and value size of a head.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.dropout import draw_kept, keep
from nmtkit.model.linear import is_low_on_cpu

LARGEST_EXPLICIT = 320 * 320
"""Weights of a head, T times S, up to which a CPU keeps them for the backward pass.

torch's own attention computes them again instead, by a backward pass that takes ten times as long
at 40 tokens in low precision on a CPU. For longer sequences it is as fast, and needs less memory.
Without a backward pass it is as fast too, and rounds less.
"""


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, dropout: float
) -> Tensor:
    """Attend from queries to keys, all heads at once.

    Args:
        query: (B, H, T, K).
        key: (B, H, S, K).
        value: (B, H, S, U).
        mask: broadcast to (B, H, T, S), True at what may be attended to; None = everywhere.
        is_causal: a position attends to itself and what stands before it; the mask is None then.
        dropout: of the weights.

    Returns:
        (B, H, T, U).
    """
    size = (query.shape[2], key.shape[2])
    is_explicit = is_low_on_cpu(query.device, query.dtype) and query.requires_grad
    if not is_explicit or math.prod(size) > LARGEST_EXPLICIT:
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


class _Explicit(torch.autograd.Function):
    """Attention by plain products, of which the backward pass has nothing but the weights kept.

    Autograd would keep three copies of them, and one of each factor.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float
    ) -> Tensor:
        kept_weights = weights(query, key, mask).to(value.dtype)
        kept = draw_kept(kept_weights.shape, dropout) if dropout else None
        ctx.dropout = dropout
        ctx.save_for_backward(query, key, value, kept_weights, kept)
        return _dropped(kept_weights, kept, dropout) @ value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value, kept_weights, kept = ctx.saved_tensors
        of_value = _dropped(kept_weights, kept, ctx.dropout).mT @ gradient
        of_weights = _dropped(gradient @ value.mT, kept, ctx.dropout)
        # Of a softmax p: p (g - sum p g).
        weighted = of_weights.float().mul_(kept_weights)
        weighted.sub_(weighted.sum(-1, keepdim=True) * kept_weights)
        of_scores = weighted.mul_(query.shape[-1] ** -0.5).to(query.dtype)
        return of_scores @ key, of_scores.mT @ query, of_value, None, None


def _dropped(of_weights: Tensor, kept: Tensor | None, dropout: float) -> Tensor:
    return of_weights if kept is None else keep(of_weights, kept, dropout)
