"""Scaled dot-product attention over padded blocks, softmax(Q K^T / sqrt(K)) V.

Source: paper, equation 1. Shapes: B sentences; H heads; T queries and S keys of a sentence; K, U
key and value size of a head.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.dropout import drop

LOW_PRECISION = (torch.bfloat16, torch.float16)

LARGEST_EXPLICIT = 320 * 320
"""Weights of a head, T times S, up to which a CPU keeps them for the backward pass.

torch's own attention computes them again instead. In low precision that takes three to six times as
long on a CPU, and no longer from here on, where keeping them would also take much memory.
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
    is_explicit = query.device.type == "cpu" and query.dtype in LOW_PRECISION
    if not is_explicit or math.prod(size) > LARGEST_EXPLICIT:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
        )
    if is_causal:
        mask = torch.ones(size, dtype=torch.bool).tril()
    return drop(weights(query, key, mask).to(value.dtype), dropout) @ value


def weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Compute softmax(Q K^T / sqrt(K)): (B, H, T, S); arguments as for `attend`."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
