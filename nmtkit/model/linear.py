"""Linear layers, x W^T + b.

oneDNN, which computes products in low precision on CPUs, makes code for each number of rows that it
meets. That takes 1 to 2.5 ms, longer than most products of an update of a thousand tokens, and no
two updates have equally many. So it is shown few numbers there: zeros fill the rows up.
"""

from typing import Any

import torch
from torch import Tensor, nn

LEAST_STEP = 64
"""Numbers of rows that products are filled up to are multiples of this."""

STEPS_TO_DOUBLE = 16
"""So many steps there are at most from a number of rows to its double; a 16th is added at most."""


class Linear(nn.Linear):
    """x W^T + b, in the precision that autocast asks for."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        if not _makes_code(x):
            return super().forward(x)
        dtype = torch.get_autocast_dtype("cpu")
        rows = x.flatten(0, -2)
        product: Tensor = _Filled.apply(rows, self.weight, self.bias, dtype)  # type: ignore[no-untyped-call]
        return product.view(*x.shape[:-1], self.out_features)


def filled_size(num_rows: int) -> int:
    """Return the number of rows that is used in place of this one: never less."""
    step = max(LEAST_STEP, (1 << num_rows.bit_length() - 1) // STEPS_TO_DOUBLE)
    return -(-num_rows // step) * step


def _makes_code(x: Tensor) -> bool:
    is_trained = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return x.device.type == "cpu" and is_trained and torch.is_autocast_enabled("cpu")


def _filled(matrix: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    """Return a matrix (X, D) in another type, with zeros below it: (num_rows, D)."""
    if len(matrix) == num_rows:
        return matrix.to(dtype)
    filled = matrix.new_empty(num_rows, matrix.shape[1], dtype=dtype)
    filled[: len(matrix)] = matrix
    filled[len(matrix) :] = 0
    return filled


class _Filled(torch.autograd.Function):
    """The products of a linear layer and of its backward pass, over filled-up rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        rows, factor = _filled(x, filled_size(len(x)), dtype), weight.to(dtype)
        ctx.types = (x.dtype, weight.dtype)
        ctx.num_rows = len(x)
        # What is kept already is not kept twice: its rows are filled up again.
        ctx.save_for_backward(x if x.dtype == dtype else rows, factor)
        return torch.addmm(bias.to(dtype), rows, factor.T)[: len(x)]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        kept, factor = ctx.saved_tensors
        of_x, of_weight = ctx.types
        rows, filled = (
            _filled(matrix, filled_size(ctx.num_rows), factor.dtype) for matrix in (kept, gradient)
        )
        return (
            (filled @ factor)[: ctx.num_rows].to(of_x),
            (filled.T @ rows).to(of_weight),
            filled.sum(0, dtype=of_weight),
            None,
        )
