"""Windows of attention: the keys of a sentence that a query may attend to, by position.

Source: paper, section 3.2.3, for full and causal attention; section 4 for self-attention
"restricted to considering only a neighborhood of size r". The latter takes time and memory linear
in the tokens: the packed sequences are split into blocks, regardless of where sequences end. The
queries of a block attend to its keys and to those to its left and right within the window. A mask
hides keys outside a query's window and keys of other sequences. Only the last block is padded.

Shapes: X packed tokens; H heads; K, U key and value size of a head; N blocks; C queries of a block;
R keys that the queries of a block can attend to.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels import padded
from nmtkit.packed import Layout

UNLIMITED = -1

MIN_BLOCK = 64
"""Smallest number of queries of a block; smaller products take hardly less time."""


@dataclass(frozen=True)
class Window:
    """Positions to the left and right of a query that it attends to; -1 = all of that side.

    This is the pair `window_size` of flash attention.
    """

    left: int
    right: int

    @property
    def is_limited(self) -> bool:
        """Whether both sides are limited, so the work is linear in the tokens."""
        return UNLIMITED not in (self.left, self.right)


FULL = Window(UNLIMITED, UNLIMITED)
"""The whole sentence, as in the encoder and over the memory."""

CAUSAL = Window(UNLIMITED, 0)
"""The query's own position and those before it, as in the decoder."""


def self_attention_window(size: int, is_causal: bool, longest: int) -> Window:
    """Return the window of self-attention.

    Args:
        size: r of `--window`: r // 2 positions on either side or, if causal, the last r positions,
            the query's own counted; 0 = no limit.
        is_causal: a position does not attend to those after it.
        longest: tokens of the longest sequence; a window that covers it has no limit.
    """
    limited = Window(size - 1, 0) if is_causal else Window(size // 2, size // 2)
    if size and limited.left < longest - 1:
        return limited
    return CAUSAL if is_causal else FULL


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    window: Window,
    dropout: float,
    size: int | None = None,
) -> Tensor:
    """Attend from each token to those of the same sequence within the window.

    Args:
        query, key: (X, H, K).
        value: (X, H, U).
        layout: where each sequence begins and ends.
        window: limited on both sides.
        dropout: of the attention weights.
        size: C, on which the result does not depend; None = chosen by the window.

    Returns:
        (X, H, U).
    """
    if size is None:
        # Half as many queries as neighbours: two thirds of the products are within the window.
        size = max(MIN_BLOCK, (window.left + window.right) // 2)
    num_tokens = query.shape[0]
    num_blocks = -(-num_tokens // size)
    padding = num_blocks * size - num_tokens
    queries = F.pad(query, (0, 0, 0, 0, 0, padding)).unflatten(0, (num_blocks, size))
    # The keys of consecutive blocks overlap; these views (N, H, K or U, R) store each key once.
    keys, values = (
        F.pad(part, (0, 0, 0, 0, window.left, padding + window.right)).unfold(
            0, window.left + size + window.right, size
        )
        for part in (key, value)
    )
    context = padded.attend(
        queries.transpose(1, 2),
        keys.mT,
        values.mT,
        _block_mask(layout, window, size, padding),
        is_causal=False,
        dropout=dropout,
    )  # (N, H, C, U)
    return context.transpose(1, 2).flatten(0, 1)[:num_tokens]


def _block_mask(layout: Layout, window: Window, size: int, padding: int) -> Tensor:
    """(N, 1, C, R) True at keys within the window of a query, in its sequence.

    Padding attends to padding, as a softmax over no keys would be NaN.
    """
    span = window.left + size + window.right
    device = layout.positions.device
    starts = torch.arange(layout.num_tokens, device=device) - layout.positions
    sequences = F.pad(starts, (window.left, padding + window.right), value=-1).unfold(0, span, size)
    own = sequences[:, window.left : window.left + size]
    places = torch.arange(span, device=device) - window.left
    distance = places - torch.arange(size, device=device)[:, None]
    is_near = (distance >= -window.left) & (distance <= window.right)
    return (is_near & (own[:, :, None] == sequences[:, None, :]))[:, None]
