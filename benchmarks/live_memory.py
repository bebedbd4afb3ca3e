"""Live and peak bytes of tensors on a CPU, as a GPU's allocator reports them.

A storage counts from the operation that returns it until it is freed. Temporary memory of an
operation, and memory that no torch operation returns, do not count.
"""

import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor, UntypedStorage
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """Counts the bytes of live tensors while the mode is active.

    Attributes:
        live: bytes of the live storages.
        peak: largest value of `live`.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        """Count existing tensors."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = 0
        self._counted: set[int] = set()
        for tensor in tensors:
            self._count(tensor.untyped_storage())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation and count the storages of its results."""
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
