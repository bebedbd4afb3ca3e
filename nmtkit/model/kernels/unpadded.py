"""Attention over packed tokens, without a padded block: flash attention, and within a window.

Flash attention over sequences of variable length needs no mask. It runs on GPUs only;
`is_flash_supported` has its limits.
Source: Dao 2023, https://arxiv.org/abs/2307.08691, in torch's implementation.

A window is the keys of a sentence that a query may attend to, by position. A limited one takes time
and memory linear in the tokens: the packed sequences are split into blocks, regardless of where
sequences end.
Source: paper, section 3.2.3, for full and causal attention; section 4 for self-attention
"restricted to considering only a neighborhood of size r".

Shapes: X, Y packed tokens of keys and of queries; B sentences; H heads; K, U key and value size of
a head; N blocks; C queries of a block; R keys that the queries of a block can attend to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels import padded
from nmtkit.packed import Layout

UNLIMITED = -1

MIN_BLOCK = 64
"""Smallest number of queries of a block; smaller products take hardly less time."""

MIN_CAPABILITY = (8, 0)
"""The oldest GPUs that flash attention runs on."""

HEAD_SIZE_MULTIPLE, MAX_HEAD_SIZE = 8, 192
"""Head sizes: multiples, up to the largest whose backward pass all GPUs have the memory for."""

MAX_PADDED_LENGTH = 32
"""Longest sequence of a batch that is padded instead: flash attention multiplies tiles of 128.

With sequences of 30 tokens, 95 % of the numbers of a tile are masked. A batch has sequences of
similar length, so little of a padded block is padding. An update of `base` on an H200 takes equal
time either way with sequences of 24 to 30 tokens (docs/performance.md).
"""


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


def is_flash_supported(
    device: torch.device, dtype: torch.dtype, sizes: tuple[int, int], dropout: float
) -> bool:
    """Return whether flash attention can compute an attention.

    With deterministic algorithms, its backward pass adds in a fixed order.

    Args:
        device: of the tensors.
        dtype: of queries, keys and values.
        sizes: K and U.
        dropout: of the attention weights.
    """
    size = max(sizes)
    return (
        device.type == "cuda"
        and dtype == torch.bfloat16
        and dropout == 0
        and size % HEAD_SIZE_MULTIPLE == 0
        and size <= MAX_HEAD_SIZE
        and _has_kernel(device)
    )


def is_flash_faster(layouts: tuple[Layout, Layout]) -> bool:
    """Return whether flash attention is faster than a padded block; see `MAX_PADDED_LENGTH`."""
    return max(layout.longest for layout in layouts) > MAX_PADDED_LENGTH


def attend_flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layouts: tuple[Layout, Layout],
    window: Window,
) -> Tensor:
    """Attend from each token to those of one sequence: softmax(Q K^T / sqrt(K)) V.

    Args:
        query: (Y, H, K).
        key: (X, H, K).
        value: (X, H, U).
        layouts: of the queries, and of keys and values, for the same B sentences.
        window: the keys that a query may attend to.

    Returns:
        (Y, H, U).
    """
    key_size, value_size = key.shape[-1], value.shape[-1]
    size = max(key_size, value_size)
    query_layout, key_layout = layouts
    # Zeros add nothing to a product of query and key, and columns of zeros to the context.
    context = _varlen_attn()(
        _pad_heads(query, size),
        _pad_heads(key, size),
        _pad_heads(value, size),
        query_layout.ends,
        key_layout.ends,
        query_layout.longest,
        key_layout.longest,
        scale=key_size**-0.5,
        window_size=(window.left, window.right),
    )
    assert isinstance(context, Tensor), "only the context was requested"
    return context[..., :value_size]


def attend_in_window(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    window: Window,
    dropout: float,
    size: int | None = None,
) -> Tensor:
    """Attend from each token to those of the same sequence within the window, block by block.

    The queries of a block attend to its keys and to those to its left and right within the window.
    A mask hides keys outside a query's window and keys of other sequences. Only the last block is
    padded.

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


def _pad_heads(values: Tensor, size: int) -> Tensor:
    missing = size - values.shape[-1]
    return F.pad(values, (0, missing)) if missing else values


@cache
def _varlen_attn() -> Callable[..., Any]:
    """Return torch's function. Its module imports torch's compiler: 800 modules, 70 MiB."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn


@cache
def _has_kernel(device: torch.device) -> bool:
    """Return whether the GPU, and this torch, have flash attention."""
    is_built = torch.backends.cuda.is_flash_attention_available()
    return is_built and torch.cuda.get_device_capability(device) >= MIN_CAPABILITY


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
