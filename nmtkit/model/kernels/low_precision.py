"""Linear layers of training, x W^T + b, whose rows are filled up in low precision on a CPU."""

from typing import Any

import torch
from torch import Tensor, nn

from nmtkit.model.kernels.rows import TRAINING, filled_size

LOW_PRECISION = (torch.bfloat16, torch.float16)


class Linear(nn.Linear):
    """x W^T + b, in the precision that autocast asks for."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        dtype = torch.get_autocast_dtype("cpu")
        if not _is_trained(x) or not is_low_on_cpu(x.device, dtype):
            return super().forward(x)
        rows = x.flatten(0, -2)
        product: Tensor = _Filled.apply(rows, self.weight, self.bias, dtype)  # type: ignore[no-untyped-call]
        return product.view(*x.shape[:-1], self.out_features)


def is_low_on_cpu(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether oneDNN computes products, so that their rows are filled up; see rows.py."""
    return device.type == "cpu" and dtype in LOW_PRECISION


def filled(matrix: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    """Return a matrix (X, D) in another type, with zeros below it: (num_rows, D)."""
    if len(matrix) == num_rows:
        return matrix.to(dtype)
    whole = matrix.new_empty(num_rows, matrix.shape[1], dtype=dtype)
    whole[: len(matrix)] = matrix
    whole[len(matrix) :] = 0
    return whole


def _is_trained(x: Tensor) -> bool:
    """Return whether gradients of a product are wanted, and autocast chooses its precision."""
    is_cast = torch.is_autocast_enabled("cpu") and x.dtype != torch.float64
    return is_cast and torch.is_grad_enabled() and not torch.compiler.is_compiling()


class _Filled(torch.autograd.Function):
    """The products of a linear layer and of its backward pass, over filled-up rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        rows, factor = filled(x, filled_size(len(x), TRAINING), dtype), weight.to(dtype)
        ctx.types = (x.dtype, weight.dtype)
        ctx.num_rows = len(x)
        # An x of this type is kept by its producer already; the backward pass fills it up again.
        ctx.save_for_backward(x if x.dtype == dtype else rows, factor)
        return torch.addmm(bias.to(dtype), rows, factor.T)[: len(x)]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        kept, factor = ctx.saved_tensors
        of_x, of_weight = ctx.types
        num_rows = filled_size(ctx.num_rows, TRAINING)
        rows, pulls = (filled(matrix, num_rows, factor.dtype) for matrix in (kept, gradient))
        return (
            (pulls @ factor)[: ctx.num_rows].to(of_x),
            (pulls.T @ rows).to(of_weight),
            pulls.sum(0).to(of_weight),  # added up in float32; rounded, in a third of the time
            None,
        )
