"""Attention alone, by length and kernel: forward and backward time, and error.

    python -m benchmarks.gpu.attention

Self-attention over sentences of one length, in bfloat16. nmtkit uses packed flash attention on a
GPU for long sentences, and padded blocks with a mask elsewhere. Columns:

    error       the gradient's difference from plain products in float32, relative to its norm
    equal_bits  equal backward passes have equal gradients
"""

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.varlen import varlen_attn

from benchmarks.gpu.measure import MILLI, Table, kernels, read_options, seconds
from benchmarks.gpu.workload import open_device

DRY_RUN = {"lengths": [3, 8], "tokens": 48, "repeats": 2}


@dataclass(frozen=True)
class Sentences:
    """Inputs of self-attention: B sentences of S tokens, H heads of size K.

    Attributes:
        joint: (B S, 3 H K) queries, keys and values, as from a layer's projection.
        block: B, S, H, K.
        ends: (B + 1,) where sentences begin and end among all tokens.
        mask: (B, 1, 1, S) which keys may be attended to: all, which no kernel can know.
    """

    joint: Tensor
    block: tuple[int, ...]
    ends: Tensor
    mask: Tensor

    @staticmethod
    def draw(block: tuple[int, int, int, int], device: torch.device) -> "Sentences":
        """Draw random queries, keys and values."""
        num_sentences, length, heads, size = block
        num_tokens = num_sentences * length
        return Sentences(
            joint=torch.randn(num_tokens, 3 * heads * size, device=device).bfloat16(),
            block=block,
            ends=torch.arange(0, num_tokens + 1, length, dtype=torch.int32, device=device),
            mask=torch.ones(num_sentences, 1, 1, length, dtype=torch.bool, device=device),
        )

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return float(self.block[-1] ** -0.5)

    def packed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, (B S, H, K) each."""
        query, key, value = self.joint.unflatten(-1, (3, *self.block[2:])).unbind(1)
        return query, key, value

    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, (B, H, S, K) each."""
        query, key, value = (
            part.view(self.block).transpose(1, 2) for part in self.joint.chunk(3, -1)
        )
        return query, key, value


Attend = Callable[[Sentences], Tensor]
"""Returns the contexts (B S, H K) of sentences."""


def packed_flash(sentences: Sentences) -> Tensor:
    """Compute attention by the kernel for packed tokens."""
    query, key, value = sentences.packed()
    ends, length = sentences.ends, sentences.block[1]
    context = varlen_attn(query, key, value, ends, ends, length, length, scale=sentences.scale)
    assert isinstance(context, Tensor), "only the context was asked for"
    return context.flatten(1)


def dense(sentences: Sentences) -> Tensor:
    """Compute attention by torch's function for padded blocks, without a mask."""
    query, key, value = sentences.padded()
    return _flat(F.scaled_dot_product_attention(query, key, value))


def masked(sentences: Sentences) -> Tensor:
    """Compute attention by torch's function for padded blocks, with a mask."""
    query, key, value = sentences.padded()
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=sentences.mask)
    return _flat(context)


def products(sentences: Sentences) -> Tensor:
    """Compute attention by matrix products and softmax."""
    query, key, value = sentences.padded()
    scores = (query @ key.mT * sentences.scale).masked_fill(~sentences.mask, -math.inf)
    return _flat(scores.softmax(-1) @ value)


@dataclass(frozen=True)
class Way:
    """A way to compute attention.

    Attributes:
        attend: the function.
        backend: the kernel that torch must use, and may refuse; None = its choice.
        needs_gpu: the kernel does not exist on CPUs.
    """

    attend: Attend
    backend: SDPBackend | None = None
    needs_gpu: bool = True

    def kernel(self) -> AbstractContextManager[None]:
        """Return a context manager in which torch uses the kernel."""
        return nullcontext() if self.backend is None else sdpa_kernel(self.backend)


WAYS = {
    "packed flash": Way(packed_flash),
    "dense flash": Way(dense, SDPBackend.FLASH_ATTENTION),
    "efficient, mask": Way(masked, SDPBackend.EFFICIENT_ATTENTION),
    "cuDNN, mask": Way(masked, SDPBackend.CUDNN_ATTENTION),
    "torch's choice, mask": Way(masked, needs_gpu=False),
    "plain products": Way(products, needs_gpu=False),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", nargs="+", type=int, default=[8, 16, 24, 32, 48, 64, 100, 150])
    parser.add_argument("--tokens", type=int, default=25_000, help="total of all sentences")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--size", type=int, default=64, help="size of a head")
    parser.add_argument("--repeats", type=int, default=10, help="timed passes")
    options = read_options(parser, arguments, DRY_RUN)
    device = open_device(options.device)
    ways = {name: way for name, way in WAYS.items() if device.type == "cuda" or not way.needs_gpu}
    with Table("attention", options, width=20) as table:
        for length in options.lengths:
            torch.manual_seed(1)
            block = (options.tokens // length, length, options.heads, options.size)
            sentences = Sentences.draw(block, device)
            exact = gradient(products, replace(sentences, joint=sentences.joint.float()))
            for name, way in ways.items():
                row = {"way": name, "length": length}
                try:
                    with way.kernel(), warnings.catch_warnings():
                        # torch warns why it refuses other kernels.
                        warnings.simplefilter("ignore")
                        table.add(row | measure(way.attend, sentences, exact, options.repeats))
                except RuntimeError as refusal:
                    if way.backend is None:
                        raise
                    print(f"{name}, length {length}: {' '.join(str(refusal).split())}")


def measure(
    attend: Attend, sentences: Sentences, exact: Tensor, num_calls: int
) -> dict[str, object]:
    """Return the columns of a way; its gradient is compared with the exact one."""
    device = exact.device

    @torch.no_grad()
    def forward() -> None:
        attend(sentences)

    def both() -> Tensor:
        return gradient(attend, sentences)

    first = both()
    return {
        "forward_ms": MILLI * seconds(forward, device, num_calls, num_warm_up=1),
        "both_ms": MILLI * seconds(both, device, num_calls),
        **kernels(both, device),
        "error": float((first - exact).norm() / exact.norm()),
        "equal_bits": all(torch.equal(first, both()) for _ in range(num_calls)),
    }


def gradient(attend: Attend, sentences: Sentences) -> Tensor:
    """Return the gradient of queries, keys and values, for a gradient of 1 of the contexts."""
    joint = sentences.joint.detach().requires_grad_()
    context = attend(replace(sentences, joint=joint))
    (found,) = torch.autograd.grad(context, joint, torch.ones_like(context))
    return found


def _flat(context: Tensor) -> Tensor:
    """Return contexts (B, H, S, K) as (B S, H K)."""
    return context.transpose(1, 2).flatten(0, 1).flatten(1)


if __name__ == "__main__":
    main()
