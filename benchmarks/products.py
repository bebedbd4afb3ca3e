"""The matrix products that an update consists of, and how fast torch.mm computes those alone.

They are recorded while a real update runs, so that nobody has to list them: forward products, and
in the backward pass the gradients of both factors. Those within attention, of many small matrices
each, are not: most are computed by a kernel of their own, and are no matrix products to torch.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Result = TypeVar("Result")

OPERAND_BYTES = 1 << 28
"""So much random memory are operands taken from in turn, so that no cache holds them already."""

_aten = torch.ops.aten
FACTORS_AT: dict[Any, int] = {
    _aten.mm: 0,
    _aten.addmm: 1,
    _aten.addmm_: 1,
}
"""Of torch's operations that are matrix products, the place of the left factor."""


@dataclass(frozen=True)
class Factor:
    """A matrix, as one of the two factors of a product.

    Attributes:
        shape: rows and columns; before them the number of matrices, where there are several.
        is_transposed: columns lie in memory one after another, instead of rows.
        dtype: of its numbers.
    """

    shape: tuple[int, ...]
    is_transposed: bool
    dtype: torch.dtype

    @staticmethod
    def of(matrix: Tensor) -> "Factor":
        """Describe a matrix."""
        rows, columns = matrix.stride()[-2:]
        return Factor(tuple(matrix.shape), rows == 1 and columns > 1, matrix.dtype)

    def take(self, pool: Tensor, first: int) -> Tensor:
        """Return such a matrix of the numbers of a pool, from the first given on."""
        numbers = pool[first : first + prod(self.shape)]
        *several, rows, columns = self.shape
        return (
            numbers.view(*several, columns, rows).mT
            if self.is_transposed
            else numbers.view(self.shape)
        )


@dataclass(frozen=True)
class Product:
    """A matrix product, or several of equal shape."""

    left: Factor
    right: Factor

    @property
    def operations(self) -> int:
        """Floating-point operations: a multiplication and an addition each."""
        return 2 * prod(self.left.shape) * self.right.shape[-1]


class Recorder(TorchDispatchMode):
    """Notes the matrix products that are computed while it is on."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Product] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Note the operation if it is a product, and do it."""
        place = FACTORS_AT.get(func.overloadpacket)
        if place is not None:
            left, right = (Factor.of(matrix) for matrix in args[place : place + 2])
            self.products.append(Product(left, right))
        return func(*args, **(kwargs or {}))


def record(work: Callable[[], Result]) -> tuple[Result, list[Product]]:
    """Do some work; returns what it returns, and the matrix products that it consists of.

    Compiled code is run as it is written.
    """
    recorder = Recorder()
    with torch.compiler.set_stance("force_eager"), recorder:
        result = work()
    return result, recorder.products


class Pools:
    """Random numbers to take operands from, of each type."""

    def __init__(self, device: torch.device) -> None:
        """Begin with none."""
        self._device = device
        self._pools: dict[torch.dtype, Tensor] = {}
        self._first = 0

    def operands(self, product: Product) -> tuple[Tensor, Tensor]:
        """Return two matrices as they are in a product, of other memory than the last ones."""
        left, right = (self._take(factor) for factor in (product.left, product.right))
        return left, right

    def _take(self, factor: Factor) -> Tensor:
        size = prod(factor.shape)
        pool = self._pools.get(factor.dtype)
        if pool is None or len(pool) < size:
            length = max(OPERAND_BYTES // factor.dtype.itemsize, size)
            pool = torch.randn(length, device=self._device).to(factor.dtype)
            self._pools[factor.dtype] = pool
        if self._first + size > len(pool):
            self._first = 0
        self._first += size
        return factor.take(pool, self._first - size)


def seconds_of(products: Iterable[Product], pools: Pools, device: torch.device) -> float:
    """Compute products by torch.mm, one after another; returns the seconds that all take."""
    operands = [pools.operands(product) for product in products]
    if device.type != "cuda":
        start = time.perf_counter()
        for left, right in operands:
            torch.matmul(left, right)
        return time.perf_counter() - start
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for left, right in operands:
        torch.matmul(left, right)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1000
