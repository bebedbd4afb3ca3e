"""Linear layers for inference, with weights that are prepared once for the processor.

oneDNN multiplies by a matrix in its own layout a third faster than MKL by the plain one, and twice
as fast if the matrix is large or the rows are few (measured on an AMD Zen 4 processor). torch's
operators for this are not part of its public interface, so they are tested before use. If they
fail, or the tensors are not on a CPU, torch's own linear layer computes the product. On Intel's
processors it also multiplies up to 16 rows by a small matrix of float32.

Products of integers: each output of the weight and each row of x has its own scale, and the sums
are exact. So a row has the same product in any batch.
"""

import warnings
from collections.abc import Callable
from functools import cache, partial
from threading import Lock

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.model.kernels.training import BLOCK_ROWS, INFERENCE_SIZES, padded_size
from nmtkit.runtime.processor import is_intel

Function = Callable[[Tensor], Tensor]

_SETTINGS_LOCK = Lock()

ROW_LEVELS = 127
"""Largest integer of x."""

WEIGHT_LEVELS = (127, 63)
"""Largest integers of weights, the first choice first.

CPUs without AVX-512 VNNI, the instructions for this product, add two products of bytes in 16 bits:
2 * 255 * 63 fits, 2 * 255 * 127 does not.
"""

ROW_ZERO = 128
"""The byte that stands for 0 in x; bytes of x have no sign."""

SMALLEST_SCALE = 1e-30
"""Of rows of zeros, too."""

PACKED_DTYPES = (torch.float32, torch.bfloat16)

MAX_PLAIN_SIZE = 2**19
MAX_PLAIN_ROWS = 16
"""Elements of the largest matrix of float32, and the most rows, that MKL multiplies on Intel CPUs.

A call of oneDNN takes 15 us more. On a Xeon, greedy search of one sentence with a model of size 256
took 1.3 times as long by oneDNN. With larger matrices or more rows oneDNN is as fast or faster.
"""


class InferenceLinear(nn.Module):
    """x W^T + b without gradients, computed in a given type."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
        result: torch.dtype | None = None,
    ) -> None:
        """Prepare a matrix; the layer may share memory with it and with the bias.

        Args:
            weight: (outputs, inputs).
            bias: (outputs,), or None.
            dtype: of the factors; int8, from float32 on CPUs, gives a product in float32.
            result: of the product; None = that of the factors. Another only on GPUs.
        """
        super().__init__()
        self.dtype = dtype
        self._input = torch.float32 if dtype == torch.int8 else dtype
        result = result or self._input
        bias = None if bias is None else bias.detach().to(result)
        if dtype == torch.int8:
            assert weight_levels(), "this torch multiplies no integers on this processor"
            self._multiply = _integer_linear_function(weight.detach(), bias, weight_levels())
        else:
            self._multiply = _linear_function(weight.detach().to(dtype), bias, result)

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., outputs) from x (..., inputs)."""
        return self._multiply(x.to(self._input))


def replace_linears(module: nn.Module, dtype: torch.dtype) -> None:
    """Replace each linear layer by one for inference, one at a time, to save memory."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, InferenceLinear(child.weight, child.bias, dtype))
        else:
            replace_linears(child, dtype)


@cache
def weight_levels() -> int:
    """Return the first of `WEIGHT_LEVELS` of which products are exact here, by trying; 0 = none."""
    x, weight = torch.ones(1, 64), torch.ones(64, 64)
    for levels in WEIGHT_LEVELS:
        try:
            product = _integer_linear_function(weight, None, levels)(x)
        except (AttributeError, NotImplementedError, RuntimeError, TypeError):
            break
        if torch.allclose(product, x @ weight.T):
            return levels
    return 0


def _integer_linear_function(weight: Tensor, bias: Tensor | None, levels: int) -> Function:
    """Return the product with a matrix of integers, by torch's library for x86 processors.

    oneDNN, which torch has too, is slower than float32 on processors without AVX-512 VNNI.
    """
    scales = weight.abs().amax(1).clamp_min_(SMALLEST_SCALE).double() / levels
    zeros = torch.zeros_like(scales, dtype=torch.int64)
    settings, operators = torch.backends.quantized, torch.ops.quantized
    # torch warns that a later version may remove the function. Both settings are the process's.
    with _SETTINGS_LOCK, warnings.catch_warnings(action="ignore"):
        chosen = settings.engine
        settings.engine = "fbgemm"
        try:
            integers = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
            packed = operators.linear_prepack(integers, None)
        finally:
            settings.engine = chosen
    multiply = operators.linear_with_input_q_dq_qweight_dq_output_fp32.default

    def apply(x: Tensor) -> Tensor:
        largest = x.abs().amax(-1, keepdim=True).clamp_min_(SMALLEST_SCALE)
        product: Tensor = multiply(x / largest, 1 / ROW_LEVELS, ROW_ZERO, packed)
        return product.mul_(largest) if bias is None else torch.addcmul(bias, product, largest)

    return apply


def _linear_function(weight: Tensor, bias: Tensor | None, result: torch.dtype) -> Function:
    dtype = weight.dtype
    if result != dtype:
        return partial(_multiply_unrounded, weight=weight, bias=bias, result=result)
    plain = partial(F.linear, weight=weight, bias=bias)
    if weight.device.type != "cpu" or dtype not in PACKED_DTYPES or not _supports_packed(dtype):
        return plain
    packed = _packed_linear_function(weight, bias)
    is_small = dtype == torch.float32 and weight.numel() <= MAX_PLAIN_SIZE
    return partial(_multiply_by_rows, plain, packed) if is_small and is_intel() else packed


def _multiply_unrounded(
    x: Tensor, weight: Tensor, bias: Tensor | None, result: torch.dtype
) -> Tensor:
    """Multiply on a GPU; the sums, in float32, are not rounded to the type of the factors."""
    product: Tensor = torch.mm(x.flatten(0, -2), weight.T, out_dtype=result)
    product = product.unflatten(0, x.shape[:-1])
    return product if bias is None else product.add_(bias)


def _multiply_by_rows(plain: Function, packed: Function, x: Tensor) -> Tensor:
    """Multiply few rows by a plain matrix, and others by the same one, packed."""
    return plain(x) if x.shape[:-1].numel() <= MAX_PLAIN_ROWS else packed(x)


@cache
def _supports_packed(dtype: torch.dtype) -> bool:
    """Return whether this torch multiplies by packed matrices correctly, by trying it."""
    weight = torch.arange(8.0).view(4, 2).to(dtype)
    x, bias = torch.ones(3, 2, dtype=dtype), torch.ones(4, dtype=dtype)
    try:
        product = _packed_linear_function(weight, bias)(x)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return torch.equal(product, F.linear(x, weight, bias))


def _packed_linear_function(weight: Tensor, bias: Tensor | None) -> Function:
    packed = torch.ops.mkldnn._reorder_linear_weight.default(weight)
    operator = torch.ops.mkldnn._linear_pointwise.default

    def multiply(x: Tensor) -> Tensor:
        product: Tensor = operator(x, packed, bias, "none", [], "")
        return product

    def apply(x: Tensor) -> Tensor:
        num_rows = x.shape[:-1].numel()
        if num_rows == padded_size(num_rows, INFERENCE_SIZES) <= BLOCK_ROWS:
            return multiply(x)
        *blocks, last = x.flatten(0, -2).split(BLOCK_ROWS)
        padding = padded_size(len(last), INFERENCE_SIZES) - len(last)
        products = [multiply(block) for block in blocks]
        products.append(multiply(F.pad(last, (0, 0, 0, padding)))[: len(last)])
        joined = torch.cat(products) if blocks else products[0]
        product: Tensor = joined.unflatten(0, x.shape[:-1])
        return product

    return apply
