"""Linear layers and dropout of training, in the precision of autocast.

On a CPU in low precision, rows are padded: oneDNN compiles code for each number of rows. Compiling
takes 1 to 2.5 ms and most of a megabyte per number of rows and shape of matrix, ten times that for
the matrix of a vocabulary: longer than the products of an update of a thousand tokens. Updates and
steps of a search differ in their numbers of rows, so this module, `inference.py` and
`cross_entropy.py` append rows of zeros up to the sizes below. On a GPU, the weights of a whole
layer of the model are rounded together.

Masks of dropout are cheap on a CPU. torch draws one double per element there, which takes 7 % of
the training of a small model. 16 random bits per element are enough: the rate is exact to 2^-17 at
a quarter of the cost. Source of dropout: Srivastava et al. 2014; paper, section 5.4.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOW_PRECISION = (torch.bfloat16, torch.float16)

BITS = 16
"""Random bits per element of a dropout mask."""


@dataclass(frozen=True)
class RowSizes:
    """Permitted numbers of rows: powers of two up to `step`, then ever fewer multiples of it.

    Attributes:
        smallest: a power of two.
        step: a power of two.
        per_doubling: a power of two: at most this many sizes lie between a number of rows and its
            double. With many rows, at most 1 / per_doubling of them is added.
    """

    smallest: int
    step: int
    per_doubling: int


TRAINING_SIZES = RowSizes(smallest=64, step=64, per_doubling=16)
"""16 sizes up to 1024 rows."""

INFERENCE_SIZES = RowSizes(smallest=1, step=16, per_doubling=4)
"""24 sizes up to 1024 rows.

A step of a search has few rows: 4 rows, padded to 64, would take 4 to 10 times as long.
"""

BLOCK_ROWS = 1024
"""Rows per product in inference; more would add sizes, and fewer be joined by copies more often.

Blocks of 128 rows took 1.1 to 1.5 times as long from 256 rows on (Xeon, float32).
"""


class Linear(nn.Linear):
    """x W^T + b, in the precision of autocast.

    Attributes:
        rounded: weight and bias in low precision, within `call_with_rounded_weights`.
    """

    rounded: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        if self.rounded is not None:
            return F.linear(x, *self.rounded)
        return _linear(x, self.weight, self.bias)

    def part(self, x: Tensor, outputs: slice) -> Tensor:
        """Compute some of the outputs (..., outputs)."""
        return _linear(x, self.weight[outputs], self.bias[outputs])


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute x W^T + b in the precision of autocast."""
    dtype = torch.get_autocast_dtype("cpu")
    if not _is_trained_by_autocast(x) or not is_low_precision_on_cpu(x.device, dtype):
        return F.linear(x, weight, bias)
    rows = x.flatten(0, -2)
    product: Tensor = _PaddedLinear.apply(rows, weight, bias, dtype)  # type: ignore[no-untyped-call]
    return product.view(*x.shape[:-1], len(weight))


def call_with_rounded_weights(module: nn.Module, x: Tensor, *arguments: object) -> Tensor:
    """Call a module; on a GPU in low precision, its linear layers use weights rounded together.

    Autocast would round each weight by a kernel of its own, and convert each gradient by another.
    Results are the same. The rounded weights are attributes of the linear layers during the call.

    Args:
        module: a part of a model; its linear layers have biases.
        x: its first argument, on the device of its weights.
        arguments: its other arguments.
    """
    if not _rounds_together(x):
        output: Tensor = module(x, *arguments)
        return output
    linears = [linear for linear in module.modules() if isinstance(linear, Linear)]
    weights = [tensor for linear in linears for tensor in (linear.weight, linear.bias)]
    dtype = torch.get_autocast_dtype(x.device.type)
    rounded = _RoundTogether.apply(dtype, *weights)  # type: ignore[no-untyped-call]
    for linear, weight, bias in zip(linears, rounded[::2], rounded[1::2], strict=True):
        linear.rounded = weight, bias
    try:
        output = module(x, *arguments)
    finally:
        for linear in linears:
            linear.rounded = None
    return output


class Dropout(nn.Module):
    """Set elements to zero with probability `rate` in training, and scale up the others."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of x, of any shape."""
        if not self.training or self.rate == 0:
            return x
        # On a GPU one kernel draws, masks and scales.
        if x.is_cuda:
            return nn.functional.dropout(x, self.rate)
        dropped: Tensor = _CpuDropout.apply(x, self.rate)  # type: ignore[no-untyped-call]
        return dropped


def padded_size(num_rows: int, sizes: RowSizes) -> int:
    """Return the smallest permitted number of rows that is at least `num_rows`."""
    power = 1 << (num_rows - 1).bit_length()
    if power <= sizes.step:
        return max(sizes.smallest, power)
    step = max(sizes.step, (1 << num_rows.bit_length() - 1) // sizes.per_doubling)
    return -(-num_rows // step) * step


def is_low_precision_on_cpu(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether oneDNN computes products, so rows are padded."""
    return device.type == "cpu" and dtype in LOW_PRECISION


def pad_rows(matrix: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    """Convert a matrix (X, D) to a type and append rows of zeros: (num_rows, D)."""
    if len(matrix) == num_rows:
        return matrix.to(dtype)
    whole = matrix.new_empty(num_rows, matrix.shape[1], dtype=dtype)
    whole[: len(matrix)] = matrix
    whole[len(matrix) :] = 0
    return whole


def apply_dropout_mask(x: Tensor, is_kept: Tensor, rate: float) -> Tensor:
    """Set elements of x to zero except the kept ones, and divide these by 1 - rate."""
    return (x * is_kept).mul_(1 / (1 - rate))


def draw_dropout_mask(shape: torch.Size, rate: float) -> Tensor:
    """Draw a bool mask, True at kept elements, from torch's global generator of the CPU."""
    num_elements = shape.numel()
    numbers_per_word = 64 // BITS
    words = torch.empty(-(-num_elements // numbers_per_word), dtype=torch.int64)
    words.random_(torch.iinfo(torch.int64).min, None)
    numbers = words.view(torch.int16)[:num_elements].view(shape)
    threshold = round(rate * 2**BITS) + torch.iinfo(torch.int16).min
    return numbers.ge(threshold)


def _is_trained_by_autocast(x: Tensor) -> bool:
    """Return whether gradients of a product are needed and autocast chooses its precision."""
    is_cast = torch.is_autocast_enabled("cpu") and x.dtype != torch.float64
    return is_cast and torch.is_grad_enabled()


def _rounds_together(x: Tensor) -> bool:
    """Return whether the weights of a layer are rounded together before it is computed."""
    is_needed = torch.is_autocast_enabled(x.device.type) and torch.is_grad_enabled()
    return x.is_cuda and is_needed


class _RoundTogether(torch.autograd.Function):
    """Rounds tensors to a type, and converts their gradients back, by one kernel each."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *exact: Tensor) -> tuple[Tensor, ...]:
        rounded = [torch.empty_like(tensor, dtype=dtype) for tensor in exact]
        torch._foreach_copy_(rounded, exact)
        # A frozen tensor has no gradient.
        pairs = zip(rounded, ctx.needs_input_grad[1:], strict=True)
        ctx.mark_non_differentiable(*(tensor for tensor, is_needed in pairs if not is_needed))
        ctx.set_materialize_grads(False)
        ctx.dtype = exact[0].dtype
        return tuple(rounded)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        known = [gradient for gradient in gradients if gradient is not None]
        exact = [torch.empty_like(gradient, dtype=ctx.dtype) for gradient in known]
        torch._foreach_copy_(exact, known)
        converted = iter(exact)
        return None, *(None if gradient is None else next(converted) for gradient in gradients)


class _PaddedLinear(torch.autograd.Function):
    """The products of a linear layer and of its backward pass, with padded rows.

    A frozen weight has no gradient, and an input below which everything is frozen has none.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        rows = pad_rows(x, padded_size(len(x), TRAINING_SIZES), dtype)
        low_weight = weight.to(dtype)
        ctx.types = (x.dtype, weight.dtype, dtype)
        ctx.num_rows = len(x)
        # An x of this type is in memory anyway; the backward pass pads it again.
        kept = (x if x.dtype == dtype else rows) if ctx.needs_input_grad[1] else None
        ctx.save_for_backward(kept, low_weight if ctx.needs_input_grad[0] else None)
        return torch.addmm(bias.to(dtype), rows, low_weight.T)[: len(x)]

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        kept, low_weight = ctx.saved_tensors
        x_type, weight_type, dtype = ctx.types
        num_rows = padded_size(ctx.num_rows, TRAINING_SIZES)
        gradients = pad_rows(gradient, num_rows, dtype)
        of_x = of_weight = of_bias = None
        if low_weight is not None:
            of_x = (gradients @ low_weight)[: ctx.num_rows].to(x_type)
        if kept is not None:
            of_weight = (gradients.T @ pad_rows(kept, num_rows, dtype)).to(weight_type)
        if ctx.needs_input_grad[2]:
            # The sum accumulates in float32 and is rounded, in a third of the time.
            of_bias = gradients.sum(0).to(weight_type)
        return of_x, of_weight, of_bias, None


class _CpuDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        is_kept = draw_dropout_mask(x.shape, rate)
        ctx.save_for_backward(is_kept)
        ctx.rate = rate
        return apply_dropout_mask(x, is_kept, rate)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (is_kept,) = ctx.saved_tensors
        return apply_dropout_mask(gradient, is_kept, ctx.rate), None
