"""The CPU: its model, its maker, its instructions; and how the process keeps freed memory."""

import ctypes
import re
import sys
from functools import cache
from pathlib import Path

PROCESSOR = Path("/proc/cpuinfo")
"""The file that lists the model and the instructions of the CPU."""


def processor_name(processor: Path = PROCESSOR) -> str:
    """Return the model of the CPU; empty if the system does not name it."""
    found = re.search(r"^model name\s*:\s*(.*\S)", _description(processor), re.MULTILINE)
    return found[1] if found else ""


@cache
def is_intel(processor: Path = PROCESSOR) -> bool:
    """Return whether the CPU is made by Intel."""
    return re.search(r"^vendor_id\s*:\s*GenuineIntel$", _description(processor), re.M) is not None


def multiplies_bfloat16(processor: Path = PROCESSOR) -> bool:
    """Return whether the CPU has instructions for bfloat16 products, which are slow without."""
    return re.search(r"\b(avx512_bf16|amx_bf16)\b", _description(processor)) is not None


def _description(processor: Path) -> str:
    """Return the system's description of the CPU; empty if there is none."""
    try:
        return processor.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
