"""The matrix products of an update, and the time of torch.mm for the same products alone.

They are recorded while an update runs: the forward products, and in the backward pass the gradients
of both factors. Products within attention are not recorded: most are computed by attention kernels,
which torch does not report as matrix products.
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
"""Size of the random memory that operands are taken from in turn, so that none is cached."""

_aten = torch.ops.aten
FACTORS_AT: dict[Any, int] = {
    _aten.mm: 0,
    _aten.addmm: 1,
    _aten.addmm_: 1,
}
"""torch's matrix products, with the argument index of the left factor."""


@dataclass(frozen=True)
class Factor:
    """One of the two matrices of a product.

    Attributes:
        shape: rows and columns; with several matrices, their number first.
        is_transposed: the matrix is stored by columns.
        dtype: type of its numbers.
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
        """Return a matrix of this shape and layout from a pool, beginning at `first`."""
        numbers = pool[first : first + prod(self.shape)]
        *several, rows, columns = self.shape
        return (
            numbers.view(*several, columns, rows).mT
            if self.is_transposed
            else numbers.view(self.shape)
        )


@dataclass(frozen=True)
class Product:
    """A matrix product, or a batch of products of equal shape."""

    left: Factor
    right: Factor

    @property
    def operations(self) -> int:
        """Floating-point operations: multiplications and additions."""
        return 2 * prod(self.left.shape) * self.right.shape[-1]


class Recorder(TorchDispatchMode):
    """Records matrix products while the mode is active."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Product] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation; record it if it is a matrix product."""
        place = FACTORS_AT.get(func.overloadpacket)
        if place is not None:
            left, right = (Factor.of(matrix) for matrix in args[place : place + 2])
            self.products.append(Product(left, right))
        return func(*args, **(kwargs or {}))


def record(work: Callable[[], Result]) -> tuple[Result, list[Product]]:
    """Call `work`; return its result and its matrix products."""
    recorder = Recorder()
    with recorder:
        result = work()
    return result, recorder.products


class Pools:
    """Random numbers of each type, from which operands are taken."""

    def __init__(self, device: torch.device) -> None:
        """Begin with none."""
        self._device = device
        self._pools: dict[torch.dtype, Tensor] = {}
        self._first = 0

    def operands(self, product: Product) -> tuple[Tensor, Tensor]:
        """Return the two matrices of a product, in other memory than the last ones."""
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
    """Return the seconds in which torch computes all products, one after another."""
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
