"""Linear layers of training, x W^T + b, in the precision of autocast.

On a CPU in low precision, their rows are padded. On a GPU, the weights of a whole layer of the
model are rounded together.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.model.kernels.product_sizes import TRAINING_SIZES, padded_size

LOW_PRECISION = (torch.bfloat16, torch.float16)


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
        dtype = torch.get_autocast_dtype("cpu")
        if not _is_trained_by_autocast(x) or not is_low_precision_on_cpu(x.device, dtype):
            return super().forward(x)
        rows = x.flatten(0, -2)
        product: Tensor = _PaddedLinear.apply(rows, self.weight, self.bias, dtype)  # type: ignore[no-untyped-call]
        return product.view(*x.shape[:-1], self.out_features)


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


def is_low_precision_on_cpu(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether oneDNN computes products, so rows are padded; see product_sizes.py."""
    return device.type == "cpu" and dtype in LOW_PRECISION


def pad_rows(matrix: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    """Convert a matrix (X, D) to a type and append rows of zeros: (num_rows, D)."""
    if len(matrix) == num_rows:
        return matrix.to(dtype)
    whole = matrix.new_empty(num_rows, matrix.shape[1], dtype=dtype)
    whole[: len(matrix)] = matrix
    whole[len(matrix) :] = 0
    return whole


def _is_trained_by_autocast(x: Tensor) -> bool:
    """Return whether gradients of a product are needed and autocast chooses its precision."""
    is_cast = torch.is_autocast_enabled("cpu") and x.dtype != torch.float64
    return is_cast and torch.is_grad_enabled() and not torch.compiler.is_compiling()


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
