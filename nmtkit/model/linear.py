"""Linear layers, x W^T + b.

oneDNN, which computes products in low precision on CPUs, makes code for each number of rows that it
meets. That takes 1 to 2.5 ms, and ten times as long for the matrix of a vocabulary: longer than the
products of an update of a thousand tokens take. No two updates have equally many. So oneDNN is
shown few numbers there: zeros fill the rows up.
"""

from typing import Any

import torch
from torch import Tensor, nn

LOW_PRECISION = (torch.bfloat16, torch.float16)

LEAST_STEP = 64
"""Numbers of rows that products are filled up to are multiples of this."""

STEPS_TO_DOUBLE = 16
"""So many steps there are at most from a number of rows to its double; a 16th is added at most."""


class Linear(nn.Linear):
    """x W^T + b, in the precision that autocast asks for."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        if not _is_trained(x) or not makes_code(x.device, torch.get_autocast_dtype("cpu")):
            return super().forward(x)
        rows, dtype = x.flatten(0, -2), torch.get_autocast_dtype("cpu")
        product: Tensor = _Filled.apply(rows, self.weight, self.bias, dtype)  # type: ignore[no-untyped-call]
        return product.view(*x.shape[:-1], self.out_features)


def makes_code(device: torch.device, dtype: torch.dtype) -> bool:
    """Tell whether code is made for each number of rows of products in a type."""
    return device.type == "cpu" and dtype in LOW_PRECISION


def filled_size(num_rows: int) -> int:
    """Return the number of rows that is used in place of this one: never less."""
    step = max(LEAST_STEP, (1 << num_rows.bit_length() - 1) // STEPS_TO_DOUBLE)
    return -(-num_rows // step) * step


def filled(matrix: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    """Return a matrix (X, D) in another type, with zeros below it: (num_rows, D)."""
    if len(matrix) == num_rows:
        return matrix.to(dtype)
    whole = matrix.new_empty(num_rows, matrix.shape[1], dtype=dtype)
    whole[: len(matrix)] = matrix
    whole[len(matrix) :] = 0
    return whole


def _is_trained(x: Tensor) -> bool:
    """Tell whether gradients of a product are wanted, and autocast chooses its precision."""
    is_cast = torch.is_autocast_enabled("cpu") and x.dtype != torch.float64
    return is_cast and torch.is_grad_enabled() and not torch.compiler.is_compiling()


class _Filled(torch.autograd.Function):
    """The products of a linear layer and of its backward pass, over filled-up rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        rows, factor = filled(x, filled_size(len(x)), dtype), weight.to(dtype)
        ctx.types = (x.dtype, weight.dtype)
        ctx.num_rows = len(x)
        # What is kept already is not kept twice: its rows are filled up again.
        ctx.save_for_backward(x if x.dtype == dtype else rows, factor)
        return torch.addmm(bias.to(dtype), rows, factor.T)[: len(x)]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        kept, factor = ctx.saved_tensors
        of_x, of_weight = ctx.types
        rows, pulls = (
            filled(matrix, filled_size(ctx.num_rows), factor.dtype) for matrix in (kept, gradient)
        )
        return (
            (pulls @ factor)[: ctx.num_rows].to(of_x),
            (pulls.T @ rows).to(of_weight),
            pulls.sum(0, dtype=of_weight),
            None,
        )
