"""Test doubles: a clock, flash attention without a GPU, and watches on tensors and batches."""

from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmtkit.model.embedding import Embedding
from nmtkit.model.kernels import unpadded
from nmtkit.progress import counting


class Clock:
    """Returns `now`, in seconds, until a test changes it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def report_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let work report all that it counts, without waiting."""
    for name in ("FIRST_REPORT_S", "REPORT_S", "REFRESH_S"):
        monkeypatch.setattr(counting, name, 0.0)


class LargestTensor(TorchDispatchMode):
    """Watches every operation for the largest storage that it returns."""

    num_elements = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.num_elements = max(self.num_elements, leaf.numel())
        return result


class Products(TorchDispatchMode):
    """Watches matrix products.

    Attributes:
        shapes: the shapes of both factors of each product.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: list[tuple[torch.Size, torch.Size]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = {"mm": 0, "addmm": 1, "addmm_": 1}.get(func.overloadpacket.__name__)
        if first is not None:
            left, right = args[first : first + 2]
            self.shapes.append((left.shape, right.shape))
        return func(*args, **(kwargs or {}))


def watch_embedding(embedding: Embedding, batches: list[tuple[int, ...]]) -> None:
    """Append to a list the lengths of the sequences of each batch that is embedded."""

    def observe(_: nn.Module, arguments: tuple[Tensor, Tensor, int]) -> None:
        begins = [*(arguments[1] == 0).nonzero().flatten().tolist(), len(arguments[1])]
        batches.append(tuple(end - begin for begin, end in pairwise(begins)))

    embedding.register_forward_pre_hook(observe)


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *of_queries_and_keys: Any,
    scale: float,
    window_size: tuple[int, int],
) -> Tensor:
    """Attend sequence by sequence, as torch documents it; refuse what flash attention refuses."""
    cu_seq_q, cu_seq_k, max_q, max_k = of_queries_and_keys
    assert query.shape[-1] == key.shape[-1] == value.shape[-1]
    for ends, longest, values in ((cu_seq_q, max_q, query), (cu_seq_k, max_k, key)):
        assert ends.dtype == torch.int32
        assert ends[0] == 0
        assert ends[-1] == len(values)
        assert longest == int(ends.diff().max())
    left, right = (size if size >= 0 else max_q + max_k for size in window_size)
    contexts = []
    pairs = zip(pairwise(cu_seq_q.tolist()), pairwise(cu_seq_k.tolist()), strict=True)
    for own, other in pairs:
        q, k, v = query[slice(*own)], key[slice(*other)], value[slice(*other)]
        distance = torch.arange(len(k)) - torch.arange(len(q))[:, None]
        mask = (-left <= distance) & (distance <= right)
        q, k, v = (side.transpose(0, 1) for side in (q, k, v))
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        contexts.append(context.transpose(0, 1))
    return torch.cat(contexts)


def pretend_flash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all attention without dropout use the double of flash attention, on every device."""

    def is_supported(_device: object, _dtype: object, _sizes: object, dropout: float) -> bool:
        return dropout == 0

    monkeypatch.setattr(unpadded, "_varlen_attn", lambda: varlen_attn)
    monkeypatch.setattr(unpadded, "is_flash_supported", is_supported)
    monkeypatch.setattr(unpadded, "MAX_PADDED_LENGTH", 0)
