"""Settings of glibc's malloc that keep freed memory in the process.

By default glibc returns a large block to the kernel when it is freed. The next block of that size
is mapped and zeroed again, with a page fault per page. Training frees and allocates tensors of the
same sizes in every update, so keeping the blocks saves time.

A module of its own: its test counts the page faults of a process without torch.
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
    """Make malloc keep freed blocks; without glibc, do nothing, since this only saves time.

    All blocks come from one heap, which grows by 64 MiB at a time and never shrinks.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, NEVER)
        library.mallopt(M_TOP_PAD, TOP_PAD_BYTES)
        library.mallopt(M_ARENA_MAX, 1)
