"""Bytes of the tensors that live at the same time: what a GPU's allocator reports, on a CPU.

A storage that an operation returns counts until it is freed. Temporary memory of an operation does
not count, and neither does memory that no operation of torch returns.
"""

import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor, UntypedStorage
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """Counts while it is on.

    Attributes:
        live: bytes of the storages that there are.
        peak: the most that there were.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        """Begin with tensors that are there already."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = 0
        self._counted: set[int] = set()
        for tensor in tensors:
            self._count(tensor.untyped_storage())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Do an operation, and count the storages of what it returns."""
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: UntypedStorage) -> None:
        address, size = storage._cdata, storage.nbytes()
        if address in self._counted:
            return
        self._counted.add(address)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._drop, address, size)

    def _drop(self, address: int, size: int) -> None:
        self._counted.remove(address)
        self.live -= size
