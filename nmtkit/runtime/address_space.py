"""The limit of a process's address space (`ulimit -v`), checked before libraries that would abort.

A module of its own: it must not import torch, and lower layers use it than `memory.py`.
"""

import resource
import sys
from pathlib import Path

from nmtkit.errors import ResourceError
from nmtkit.units import mebibytes


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
