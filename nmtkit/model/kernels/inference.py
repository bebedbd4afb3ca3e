"""Linear layers for inference: weights brought once into the form that this machine multiplies by.

oneDNN multiplies by a matrix that it has laid out itself a third faster than MKL by the plain one,
twice as fast where the matrix is large or the rows are few (measured on an AMD Zen 4 processor).
torch offers this to its own compiler alone, through operators that are not part of its public
interface. So they are tried out first, and where they are not what they were, or the tensors are
not on a CPU, torch's own linear layer takes their place.
"""

from collections.abc import Callable
from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Function = Callable[[Tensor], Tensor]

PACKED_DTYPES = (torch.float32, torch.bfloat16)

BLOCK_ROWS = 128
"""Rows that are multiplied at a time; more are not faster.

oneDNN compiles code for each number of rows that it meets, which takes a millisecond and the better
part of a megabyte, and keeps it. So it is shown few numbers: blocks, and smaller usual sizes.
"""

ROWS_STEP = 16
"""Usual sizes are powers of two up to here, then its multiples."""


class InferenceLinear(nn.Module):
    """x W^T + b without gradients; x is brought to a given type, which the result has too."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        """Prepare a matrix; neither it nor the bias is referred to afterwards.

        Args:
            weight: (outputs, inputs).
            bias: (outputs,), if there is one.
            dtype: in which to multiply.
        """
        super().__init__()
        self.dtype = dtype
        own_bias = None if bias is None else bias.detach().to(dtype)
        self._multiply = _multiplication(weight.detach().to(dtype), own_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        return self._multiply(x.to(self.dtype))


def replace_linears(module: nn.Module, dtype: torch.dtype) -> None:
    """Put an `InferenceLinear` in the place of each linear layer, one by one to save memory."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, InferenceLinear(child.weight, child.bias, dtype))
        else:
            replace_linears(child, dtype)


def _multiplication(weight: Tensor, bias: Tensor | None) -> Function:
    if weight.device.type == "cpu" and weight.dtype in PACKED_DTYPES and _packs(weight.dtype):
        return _packed_multiplication(weight, bias)
    return partial(F.linear, weight=weight, bias=bias)


@cache
def _packs(dtype: torch.dtype) -> bool:
    """Try out whether this torch multiplies by packed matrices, and rightly."""
    weight = torch.arange(8.0).view(4, 2).to(dtype)
    x, bias = torch.ones(3, 2, dtype=dtype), torch.ones(4, dtype=dtype)
    try:
        product = _packed_multiplication(weight, bias)(x)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return torch.equal(product, F.linear(x, weight, bias))


def _packed_multiplication(weight: Tensor, bias: Tensor | None) -> Function:
    packed = torch.ops.mkldnn._reorder_linear_weight.default(weight)
    operator = torch.ops.mkldnn._linear_pointwise.default

    def multiply(x: Tensor) -> Tensor:
        product: Tensor = operator(x, packed, bias, "none", [], "")
        return product

    def apply(x: Tensor) -> Tensor:
        num_rows = x.shape[:-1].numel()
        if num_rows == usual_size(num_rows) <= BLOCK_ROWS:
            return multiply(x)
        *blocks, last = x.flatten(0, -2).split(BLOCK_ROWS)
        padding = usual_size(len(last)) - len(last)
        products = [multiply(block) for block in blocks]
        products.append(multiply(F.pad(last, (0, 0, 0, padding)))[: len(last)])
        product: Tensor = torch.cat(products).unflatten(0, x.shape[:-1])
        return product

    return apply


def usual_size(num_rows: int) -> int:
    """Return the number of rows that is used in place of this one: never less, seldom much more."""
    if num_rows <= ROWS_STEP:
        return 1 << (num_rows - 1).bit_length()
    return -(-num_rows // ROWS_STEP) * ROWS_STEP
