"""The limit of a process's address space (`ulimit -v`), checked before libraries that would abort.

A module of its own: it must not import torch, and it is used in lower layers than `memory.py`.
"""

import importlib.abc
import resource
import sys
from pathlib import Path

from nmtkit.errors import ResourceError
from nmtkit.units import mebibytes

TORCH_BYTES = 640 * 2**20
"""Address space of torch's libraries without a GPU."""


def require_address_space(needed: int, user: str) -> None:
    """Raise ResourceError if the limit leaves less than `needed` bytes for `user`, a library."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    left = limit - pages * resource.getpagesize()
    if left < needed:
        raise ResourceError(
            f"out of memory: {user} needs {mebibytes(needed)} of address space, and the limit "
            f"leaves {mebibytes(max(left, 0))}; raise it (see ulimit -v)"
        )


def refuse_torch_without_room() -> None:
    """Have the first import of torch raise ResourceError where the limit is too low for it."""
    sys.meta_path.insert(0, _RoomForTorch())


class _RoomForTorch(importlib.abc.MetaPathFinder):
    """Finds no module, but refuses to import torch where it would abort the process."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002
        """Raise ResourceError if torch is to be imported and has too little address space."""
        if fullname == "torch":
            require_address_space(TORCH_BYTES, "PyTorch")
