"""Attention straight from packed tokens, by flash attention over sequences of variable length.

Nothing is unpacked, padded or masked. It is for GPUs, and for what it can compute there: see
`takes`.
Source: Dao 2023, https://arxiv.org/abs/2307.08691, as torch has it.

Shapes: X, Y packed tokens of keys and of queries; B sentences; H heads; K, U key and value size.
"""

import inspect
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn

from nmtkit.model.kernels.reach import Reach
from nmtkit.packed import Layout

DTYPES = (torch.bfloat16, torch.float16)
CAPABILITY = (8, 0)
"""What flash attention multiplies, and the oldest GPUs that do."""

SIZE_STEP, LARGEST_SIZE = 8, 192
"""The sizes of heads that it takes: multiples, up to the largest."""

ROOMY, LARGEST_IN_ROOM = ((8, 0), (9, 0)), 256
"""GPUs with room on the chip for the backward pass of larger heads, and the largest there.

On others torch refuses some of these sizes, and not before the backward pass.
"""


def takes(device: torch.device, dtype: torch.dtype, sizes: tuple[int, int], dropout: float) -> bool:
    """Return whether flash attention can compute an attention.

    It cannot where equal runs must be equal to the bit: the order in which its backward pass adds
    is left to chance.

    Args:
        device: where it is computed.
        dtype: of queries, keys and values.
        sizes: K and U.
        dropout: of the attention weights.
    """
    size = max(sizes)
    return (
        device.type == "cuda"
        and dtype in DTYPES
        and dropout == 0
        and size % SIZE_STEP == 0
        and not torch.are_deterministic_algorithms_enabled()
        and size <= _largest_size(device)
    )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layouts: tuple[Layout, Layout],
    reach: Reach,
) -> Tensor:
    """Attend from each token to those of one sequence: softmax(Q K^T / sqrt(K)) V.

    Args:
        query: (Y, H, K).
        key: (X, H, K).
        value: (X, H, U).
        layouts: of the queries, and of keys and values, for the same B sentences.
        reach: the keys that a query may attend to.

    Returns:
        (Y, H, U).
    """
    key_size, value_size = key.shape[-1], value.shape[-1]
    size = max(key_size, value_size)
    asking, asked = layouts
    # Zeros add nothing to a product of query and key, and columns of zeros to the context.
    context = varlen_attn(
        _widened(query, size),
        _widened(key, size),
        _widened(value, size),
        asking.ends,
        asked.ends,
        asking.longest,
        asked.longest,
        scale=key_size**-0.5,
        window_size=(reach.before, reach.after),
    )
    assert isinstance(context, Tensor), "only the context was asked for"
    return context[..., :value_size]


def _widened(values: Tensor, size: int) -> Tensor:
    missing = size - values.shape[-1]
    return F.pad(values, (0, missing)) if missing else values


@cache
def _largest_size(device: torch.device) -> int:
    """Return the largest size of heads; 0 where the GPU, or this torch, has no flash attention."""
    capability = torch.cuda.get_device_capability(device)
    is_built = torch.backends.cuda.is_flash_attention_available()
    # The first torch that had it took no window.
    has_windows = {"scale", "window_size"} <= set(inspect.signature(varlen_attn).parameters)
    if capability < CAPABILITY or not is_built or not has_windows:
        return 0
    return LARGEST_IN_ROOM if capability in ROOMY else LARGEST_SIZE
