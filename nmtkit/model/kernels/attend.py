"""Attention between packed sequences, softmax(Q K^T / sqrt(K)) V, by the fastest kernel that can.

Source: paper, section 3.2.1, equation 1. Flash attention takes packed tokens where a GPU can
(flash.py). Within a window, attention takes blocks of packed tokens (windowed.py). Elsewhere it
unpacks them to a padded block (padded.py).

Shapes: X, Y packed tokens of keys and of queries; B sentences; W rows of a sentence; T, S longest
sequence of queries and of keys; H heads; K, U key and value size of a head; C positions of a step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.model.kernels import flash, padded, windowed
from nmtkit.model.kernels.padded import heads_first, split_heads
from nmtkit.model.kernels.reach import CAUSAL, EVERYTHING, UNLIMITED, Reach
from nmtkit.packed import Layout


@dataclass(frozen=True)
class Projection:
    """Queries, keys and values of packed tokens, or some of these, as one product computed them.

    They stay joined, as a padded block is made of all of them in one pass.

    Attributes:
        values: (X, sum of sizes).
        layout: of the tokens.
        sizes: of queries, keys or values each, H times the size of a head.
    """

    values: Tensor
    layout: Layout
    sizes: tuple[int, ...]

    def by_head(self, heads: int) -> Iterator[Tensor]:
        """Yield queries, keys or values (X, H, K or U), views."""
        # A split into a single part would copy its gradient.
        is_single = len(self.sizes) == 1
        for side in [self.values] if is_single else self.values.split(self.sizes, -1):
            yield side.view(len(side), heads, -1)

    def unpack(self) -> Tensor:
        """Spread the values over a padded block (B, S, sum of sizes)."""
        return self.layout.unpack(self.values)


def attend(projections: Sequence[Projection], heads: int, reach: Reach, dropout: float) -> Tensor:
    """Attend from each query to the keys of its sentence.

    Args:
        projections: queries, keys and values, in this order: one projection of sequences that
            attend to themselves, or that of the queries, and that of keys and values.
        heads: H.
        reach: the keys that a query may attend to.
        dropout: of the attention weights.

    Returns:
        (Y, HU).
    """
    query, key, value = (side for one in projections for side in one.by_head(heads))
    layouts = projections[0].layout, projections[-1].layout
    if flash.takes(query.device, query.dtype, (query.shape[-1], value.shape[-1]), dropout):
        context = flash.attend(query, key, value, layouts, reach)
    elif reach.is_limited:
        context = windowed.attend(query, key, value, layouts[0], reach, dropout)
    else:
        context = _attend_padded(projections, heads, reach, dropout)
    return context.flatten(1)  # (Y, H, U) -> (Y, HU)


def attention_weights(projections: Sequence[Projection], heads: int, reach: Reach) -> Tensor:
    """Compute the weights by which `attend` averages values; arguments as for `attend`.

    Returns:
        (B, H, T, S): a query's weights sum to 1, and are 0 where it may not attend; rows of
        padding mean nothing.
    """
    query, key, *_ = (
        heads_first(side, heads)
        for one in projections
        for side in one.unpack().split(one.sizes, -1)
    )
    mask = _padding_mask(projections[-1].layout)
    if reach != EVERYTHING:
        reached = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
        if reach.after != UNLIMITED:
            reached = reached.tril(reach.after)
        if reach.before != UNLIMITED:
            reached = reached.triu(-reach.before)
        mask = reached if mask is None else mask & reached
    return padded.weights(query, key, mask)


def attend_step(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor, heads: int) -> Tensor:
    """Attend from one position of each row: softmax(Q K^T + bias) V, the keys being scaled.

    For so few queries these products are several times as fast on a CPU as torch's own attention.

    Args:
        query: (B, W, HK).
        keys: (BH, K, C) of C positions, times K^-1/2.
        values: (BH, C, U).
        bias: (BH, W or 1, C) added to the scores: 0, or -inf where nothing is attended to.
        heads: H.

    Returns:
        (B, W, HU).
    """
    sentences, width, _ = query.shape
    # (B, W, HK) -> (BH, W, K); a query in low precision takes the type of the keys on the way.
    rows = heads_first(query, heads).to(keys.dtype, memory_format=torch.contiguous_format)
    scores = torch.bmm(rows.flatten(0, 1), keys).add_(bias)
    context = torch.bmm(scores.softmax(-1), values)  # (BH, W, U)
    return context.view(sentences, heads, width, -1).transpose(1, 2).flatten(2)


def _attend_padded(
    projections: Sequence[Projection], heads: int, reach: Reach, dropout: float
) -> Tensor:
    """Attend in padded blocks: (Y, H, U)."""
    query, key, value = (
        side for one in projections for side in split_heads(one.unpack(), heads, one.sizes)
    )
    asking, asked = projections[0].layout, projections[-1].layout
    is_causal = reach == CAUSAL
    # Padding stands to the right, so the causal mask already hides it from every real token.
    mask = None if is_causal else _padding_mask(asked)
    context = padded.attend(query, key, value, mask, is_causal, dropout)  # (B, H, T, U)
    return asking.pack(context.transpose(1, 2))


def _padding_mask(layout: Layout) -> Tensor | None:
    """(B, 1, 1, S) True at tokens; None where there is no padding to hide."""
    return None if layout.is_rectangular else layout.mask[:, None, None, :]
