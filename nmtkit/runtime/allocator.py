"""Keeping freed memory in the process.

glibc gives a large block back to the kernel whenever it is freed; the next one of its size is
mapped and zeroed again, page fault by page fault. Training frees and takes the same tensors in
every update, so the process keeps them instead.
"""

import ctypes
import sys

# Numbers of mallopt's parameters. Source: glibc, malloc/malloc.h.
M_TRIM_THRESHOLD = -1
M_TOP_PAD = -2
M_MMAP_MAX = -4
M_ARENA_MAX = -8

NEVER = -1
TOP_PAD_BYTES = 64 * 2**20


def keep_freed_memory() -> None:
    """Make malloc keep what is freed; without glibc, do nothing: it is only an optimisation.

    Every block comes from one heap, which grows by 64 MiB at a time and never shrinks.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, NEVER)
        library.mallopt(M_TOP_PAD, TOP_PAD_BYTES)
        library.mallopt(M_ARENA_MAX, 1)
