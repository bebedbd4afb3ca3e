"""The kinds of layers that the paper's table 1 compares, as layers.py measures them.

Each turns a sequence (n, d) into another. Self-attention is ours, with its projections; the others
are torch's. Source: paper, section 4 and table 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.model.attention import SelfAttention
from nmtkit.packed import Layout

HEAD_SIZE = 64
KERNEL = 3
WINDOW = 64


def num_heads(d: int) -> int:
    """Return how many heads attention of width d has; not every width divides by it."""
    return max(1, d // HEAD_SIZE)


class Attention(nn.Module):
    """Our self-attention over one sequence."""

    def __init__(self, d: int, dropout: float, window: int) -> None:
        super().__init__()
        heads = num_heads(d)
        self.attention = SelfAttention(d, heads, d // heads, d // heads, dropout, window)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within x (n, d)."""
        output: Tensor = self.attention(x, Layout([len(x)], x.device), is_causal=False)
        return output


class AttentionProduct(nn.Module):
    """What self-attention does between its projections: each position is query, key and value."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.heads = num_heads(d)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within x (n, d)."""
        heads = x.view(1, len(x), self.heads, -1).transpose(1, 2)
        context = F.scaled_dot_product_attention(heads, heads, heads)
        return context.transpose(1, 2).reshape(len(x), -1)


class Recurrent(nn.Module):
    """One of torch's recurrent layers, whose state is as wide as its input."""

    def __init__(self, layer: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Run over x (n, d) from the first position to the last."""
        output: Tensor = self.layer(x)[0]
        return output


class Convolution(nn.Module):
    """A convolution of `KERNEL` positions; separable: one a channel, then one of all channels.

    It looks back, so that a stack of them leads from the first position to the last without
    leaving the sequence on the way.
    """

    def __init__(self, d: int, dilation: int, is_separable: bool) -> None:
        super().__init__()
        groups = d if is_separable else 1
        self.reach = dilation * (KERNEL - 1)
        self.convolution = nn.Conv1d(d, d, KERNEL, dilation=dilation, groups=groups)
        self.pointwise = nn.Linear(d, d) if is_separable else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Convolve x (n, d)."""
        output: Tensor = self.pointwise(self.convolution(F.pad(x.T, (self.reach, 0))).T)
        return output


@dataclass(frozen=True)
class Kind:
    """One kind of layer, and what table 1 says of it.

    Attributes:
        name: what the tables call it.
        build: makes a layer of width d that is the depth-th of a stack, from 0.
        cost: operations per layer in table 1.
        exponents: of n in that cost, and of d.
        sequential: table 1's sequential operations.
        path: table 1's maximum path length.
    """

    name: str
    build: Callable[[int, int], nn.Module]
    cost: str
    exponents: tuple[int, int]
    sequential: str
    path: str


PRODUCT, SELF, LSTM = "attention product alone", "self-attention", "recurrent, LSTM"
RESTRICTED = f"restricted, r = {WINDOW}"

KINDS = (
    Kind(PRODUCT, lambda d, _: AttentionProduct(d), "n^2 d", (2, 1), "1", "1"),
    Kind(SELF, lambda d, _: Attention(d, 0.0, 0), "n^2 d", (2, 1), "1", "1"),
    Kind("self-attention, dropout", lambda d, _: Attention(d, 0.1, 0), "n^2 d", (2, 1), "1", "1"),
    Kind(RESTRICTED, lambda d, _: Attention(d, 0.0, WINDOW), "r n d", (1, 1), "1", "n/r"),
    Kind(LSTM, lambda d, _: Recurrent(nn.LSTM(d, d)), "n d^2", (1, 2), "n", "n"),
    Kind("recurrent, GRU", lambda d, _: Recurrent(nn.GRU(d, d)), "n d^2", (1, 2), "n", "n"),
    Kind(
        f"convolution, k = {KERNEL}",
        lambda d, _: Convolution(d, 1, is_separable=False),
        "k n d^2",
        (1, 2),
        "1",
        "n/k",
    ),
    Kind(
        f"dilated, k = {KERNEL}",
        lambda d, depth: Convolution(d, KERNEL**depth, is_separable=False),
        "k n d^2",
        (1, 2),
        "1",
        "log_k n",
    ),
    Kind(
        f"separable, k = {KERNEL}",
        lambda d, _: Convolution(d, 1, is_separable=True),
        "k n d + n d^2",
        (1, 2),
        "1",
        "n/k",
    ),
)


def chain_length(kind: Kind, n: int) -> int:
    """Return the length of the longest chain of dependent operations in the forward pass.

    It is the longest path through autograd's graph of the output at the last position. float64
    avoids oneDNN's recurrent layers, which hide their steps in one node.
    """
    d = 8
    x = torch.randn(n, d, dtype=torch.float64, requires_grad=True)
    output = kind.build(d, 0).double()(x)
    lengths: dict[object, int] = {}
    stack = [output[-1].sum().grad_fn]
    while stack:
        node = stack[-1]
        before = [one for one, _ in node.next_functions if one is not None]
        waiting = [one for one in before if one not in lengths]
        if waiting:
            stack += waiting
        else:
            lengths[node] = 1 + max((lengths[one] for one in before), default=0)
            stack.pop()
    return max(lengths.values())


def layers_to_cross(kind: Kind, n: int) -> int:
    """Return the number of layers until the gradient of the last output reaches position 0.

    A gradient is exactly 0 without a path, and in float64 only then. A deeper stack reaches at
    least as far as a shallower one, so bisection finds the number.
    """
    d = 8

    def reaches(num_layers: int) -> bool:
        torch.manual_seed(1)
        x = torch.randn(n, d, dtype=torch.float64, requires_grad=True)
        y = x
        for depth in range(num_layers):
            y = kind.build(d, depth).double()(y)
        (gradient,) = torch.autograd.grad(y[-1].sum(), x)
        return bool((gradient[0] != 0).any())

    enough = 1
    while not reaches(enough):
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if reaches(middle) else (middle, enough)
    return enough
