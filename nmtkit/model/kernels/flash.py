"""Flash attention over sequences of variable length: reads packed tokens directly.

It needs no unpacking, padding or mask. It runs on GPUs only; `is_supported` has its limits.
Source: Dao 2023, https://arxiv.org/abs/2307.08691, in torch's implementation.

Shapes: X, Y packed tokens of keys and of queries; B sentences; H heads; K, U key and value size.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nmtkit.model.kernels.window import Window
from nmtkit.packed import Layout

DTYPES = (torch.bfloat16, torch.float16)
MIN_CAPABILITY = (8, 0)
"""Types that flash attention multiplies, and the oldest GPUs that it runs on."""

HEAD_SIZE_MULTIPLE, MAX_HEAD_SIZE = 8, 192
"""Head sizes that it supports: multiples, up to the largest."""

LARGE_HEAD_CAPABILITIES, MAX_LARGE_HEAD_SIZE = ((8, 0), (9, 0)), 256
"""GPUs with enough shared memory for the backward pass of larger heads, and the largest there.

On others torch refuses some of these sizes, but only in the backward pass.
"""

MAX_PADDED_LENGTH = 32
"""Longest sequence of a batch that is padded instead: flash attention multiplies tiles of 128.

With sequences of 30 tokens, 95 % of the numbers of a tile are masked. A batch has sequences of
similar length, so little of a padded block is padding. An update of `base` on an H200 takes equal
time either way with sequences of 24 to 30 tokens (docs/performance.md).
"""


def is_supported(
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
        and dtype in DTYPES
        and dropout == 0
        and size % HEAD_SIZE_MULTIPLE == 0
        and size <= _max_head_size(device)
    )


def is_faster(layouts: tuple[Layout, Layout]) -> bool:
    """Return whether flash attention is faster than a padded block; see `MAX_PADDED_LENGTH`."""
    return max(layout.longest for layout in layouts) > MAX_PADDED_LENGTH


def attend(
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


def _pad_heads(values: Tensor, size: int) -> Tensor:
    missing = size - values.shape[-1]
    return F.pad(values, (0, missing)) if missing else values


@cache
def _varlen_attn() -> Callable[..., Any]:
    """Return torch's function. Its module imports torch's compiler: 800 modules, 70 MiB."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn


@cache
def _max_head_size(device: torch.device) -> int:
    """Return the largest head size; 0 if the GPU, or this torch, has no flash attention."""
    capability = torch.cuda.get_device_capability(device)
    is_built = torch.backends.cuda.is_flash_attention_available()
    # The first torch with this function had no windows.
    has_windows = {"scale", "window_size"} <= set(inspect.signature(_varlen_attn()).parameters)
    if capability < MIN_CAPABILITY or not is_built or not has_windows:
        return 0
    return MAX_LARGE_HEAD_SIZE if capability in LARGE_HEAD_CAPABILITIES else MAX_HEAD_SIZE
