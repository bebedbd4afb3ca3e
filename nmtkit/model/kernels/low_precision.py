"""Linear layers of training, x W^T + b; in low precision on a CPU their rows are padded."""

from typing import Any

import torch
from torch import Tensor, nn

from nmtkit.model.kernels.row_padding import TRAINING_SIZES, padded_size

LOW_PRECISION = (torch.bfloat16, torch.float16)


class Linear(nn.Linear):
    """x W^T + b, in the precision of autocast."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        dtype = torch.get_autocast_dtype("cpu")
        if not _is_trained_by_autocast(x) or not is_low_precision_on_cpu(x.device, dtype):
            return super().forward(x)
        rows = x.flatten(0, -2)
        product: Tensor = _PaddedLinear.apply(rows, self.weight, self.bias, dtype)  # type: ignore[no-untyped-call]
        return product.view(*x.shape[:-1], self.out_features)


def is_low_precision_on_cpu(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether oneDNN computes products, so rows are padded; see row_padding.py."""
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
