"""Attention between packed sequences, softmax(Q K^T / sqrt(K)) V, by the fastest suitable kernel.

Source: paper, section 3.2.1, equation 1. Flash attention, on GPUs that support it, and attention
within a window read the packed tokens (unpadded.py). Otherwise tokens are unpacked to a padded
block (padded.py).

Shapes: X, Y packed tokens of keys and of queries; B sentences; W rows of a sentence; T, S longest
sequence of queries and of keys; H heads; K, U key and value size of a head; C positions of a step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmtkit.model.kernels import padded, unpadded
from nmtkit.model.kernels.padded import heads_first, split_heads
from nmtkit.model.kernels.unpadded import CAUSAL, FULL, UNLIMITED, Window, self_attention_window
from nmtkit.packed import Layout

__all__ = (
    "FULL",
    "Projection",
    "attend",
    "attend_step",
    "attention_weights",
    "heads_first",
    "self_attention_window",
)
"""All that `nmtkit/model/attention.py` needs to compute attention."""


@dataclass(frozen=True)
class Projection:
    """Queries, keys and values of packed tokens, or some of these, as one product computed them.

    They stay in one tensor, so that a padded block is made of all of them in one pass.

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
        for part in [self.values] if is_single else self.values.split(self.sizes, -1):
            yield part.view(len(part), heads, -1)

    def unpack(self) -> Tensor:
        """Copy the values into a padded block (B, S, sum of sizes)."""
        return self.layout.unpack(self.values)


def attend(projections: Sequence[Projection], heads: int, window: Window, dropout: float) -> Tensor:
    """Attend from each query to the keys of its sentence.

    Args:
        projections: queries, keys and values, in this order: a single projection for
            self-attention, or one of the queries and one of keys and values.
        heads: H.
        window: the keys that a query may attend to.
        dropout: of the attention weights.

    Returns:
        (Y, HU).
    """
    queries, values = projections[0], projections[-1]
    head_sizes = queries.sizes[0] // heads, values.sizes[-1] // heads  # K, U
    layouts = queries.layout, values.layout
    is_flash = unpadded.is_flash_supported(
        queries.values.device, queries.values.dtype, head_sizes, dropout
    ) and (window.is_limited or unpadded.is_flash_faster(layouts))
    if is_flash:
        context = unpadded.attend_flash(*_by_head(projections, heads), layouts, window)
    elif window.is_limited:
        context = unpadded.attend_in_window(
            *_by_head(projections, heads), queries.layout, window, dropout
        )
    else:
        context = _attend_padded(projections, heads, window, dropout)
    return context.flatten(1)  # (Y, H, U) -> (Y, HU)


def attention_weights(projections: Sequence[Projection], heads: int, window: Window) -> Tensor:
    """Compute the weights by which `attend` averages values; arguments as for `attend`.

    Returns:
        (B, H, T, S): a query's weights sum to 1, and are 0 where it may not attend; rows of
        padding are undefined.
    """
    query, key, *_ = (
        heads_first(part, heads)
        for one in projections
        for part in one.unpack().split(one.sizes, -1)
    )
    mask = _padding_mask(projections[-1].layout)
    if window != FULL:
        is_inside = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
        if window.right != UNLIMITED:
            is_inside = is_inside.tril(window.right)
        if window.left != UNLIMITED:
            is_inside = is_inside.triu(-window.left)
        mask = is_inside if mask is None else mask & is_inside
    return padded.weights(query, key, mask)


def attend_step(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor, heads: int) -> Tensor:
    """Attend from one position of each row: softmax(Q K^T + bias) V, with scaled keys.

    For so few queries these products are several times as fast on a CPU as torch's own attention.

    Args:
        query: (B, W, HK).
        keys: (BH, K, C) of C positions, times K^-1/2.
        values: (BH, C, U).
        bias: (BH, W or 1, C) added to the scores: 0, or -inf where a row may not attend.
        heads: H.

    Returns:
        (B, W, HU).
    """
    sentences, width, _ = query.shape
    # (B, W, HK) -> (BH, W, K); `to` also converts a low-precision query to the type of the keys.
    rows = heads_first(query, heads).to(keys.dtype, memory_format=torch.contiguous_format)
    scores = torch.bmm(rows.flatten(0, 1), keys).add_(bias)
    context = torch.bmm(scores.softmax(-1), values)  # (BH, W, U)
    return context.view(sentences, heads, width, -1).transpose(1, 2).flatten(2)


def _by_head(projections: Sequence[Projection], heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries (Y, H, K), keys (X, H, K) and values (X, H, U), views."""
    query, key, value = (part for one in projections for part in one.by_head(heads))
    return query, key, value


def _attend_padded(
    projections: Sequence[Projection], heads: int, window: Window, dropout: float
) -> Tensor:
    """Attend in padded blocks: (Y, H, U)."""
    query, key, value = (
        part for one in projections for part in split_heads(one.unpack(), heads, one.sizes)
    )
    query_layout, key_layout = projections[0].layout, projections[-1].layout
    is_causal = window == CAUSAL
    # Padding is at the end, so the causal mask already hides it from every real token.
    mask = None if is_causal else _padding_mask(key_layout)
    context = padded.attend(query, key, value, mask, is_causal, dropout)  # (B, H, T, U)
    return query_layout.pack(context.transpose(1, 2))


def _padding_mask(layout: Layout) -> Tensor | None:
    """(B, 1, 1, S) True at tokens; None if there is no padding to hide."""
    return None if layout.is_rectangular else layout.mask[:, None, None, :]
