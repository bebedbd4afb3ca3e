"""Freed memory, counted in page faults, in a process of its own: mallopt lasts."""

import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.runtime.processor import keep_freed_memory

PROGRAM = """
import ctypes, resource, sys
from nmtkit.runtime.processor import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p

def touch(size):
    block = library.malloc(ctypes.c_size_t(size))
    ctypes.memset(block, 1, size)
    library.free(ctypes.c_void_p(block))

def count_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

touch(2**25)
before = count_faults()
for _ in range(5):
    touch(2**25)
print(count_faults() - before)
"""
NUM_PAGES = 5 * 2**25 // 4096


def faults(mode: str) -> int:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(Path.cwd())},
    )
    return int(process.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_a_block_taken_again_after_it_was_freed_costs_no_page_faults() -> None:
    assert faults("keep") < NUM_PAGES // 1000


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_without_it_the_block_is_faulted_in_again() -> None:
    # Huge pages, where they are on, take 512 pages in one fault.
    assert faults("leave") >= NUM_PAGES // 512 > NUM_PAGES // 1000


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("ctypes.CDLL", None)
    keep_freed_memory()


def test_another_c_library_stays_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Musl:
        """Has neither glibc's version nor its mallopt."""

    monkeypatch.setattr("ctypes.CDLL", lambda _name: Musl())
    keep_freed_memory()
