"""The CPU is known by the system's description of it; freed memory, counted in page faults."""

import subprocess
import sys
from pathlib import Path

import pytest

from nmtkit.runtime.processor import (
    is_intel,
    keep_freed_memory,
    multiplies_bfloat16,
    processor_name,
)


@pytest.mark.parametrize(
    ("flags", "has_them"),
    [
        ("flags : fpu avx512f avx512_bf16 vaes", True),
        ("flags : fpu amx_bf16 amx_tile", True),
        ("flags : fpu avx512f avx512_bf16_emulated", False),
        ("flags : fpu avx2", False),
    ],
)
def test_instructions_for_bfloat16_are_among_the_processors_flags(
    flags: str, has_them: bool, tmp_path: Path
) -> None:
    processor = tmp_path / "cpuinfo"
    processor.write_text(f"model name : any\n{flags}\n", encoding="ascii")
    assert multiplies_bfloat16(processor) == has_them


def test_the_model_of_the_processor_is_read_from_the_systems_description(tmp_path: Path) -> None:
    processor = tmp_path / "cpuinfo"
    assert processor_name(processor) == ""
    processor.write_text("processor : 0\nmodel : 25\n", encoding="ascii")
    assert processor_name(processor) == ""
    processor.write_text(2 * "model : 25\nmodel name\t: A B (R) 9 \nflags\t: c\n", encoding="ascii")
    assert processor_name(processor) == "A B (R) 9"


def test_a_processor_without_a_description_has_no_such_instructions(tmp_path: Path) -> None:
    assert not multiplies_bfloat16(tmp_path / "none")
    assert not is_intel(tmp_path / "none")


@pytest.mark.parametrize("maker", ["GenuineIntel", "AuthenticAMD"])
def test_the_maker_of_the_processor_is_known(maker: str, tmp_path: Path) -> None:
    processor = tmp_path / "cpuinfo"
    processor.write_text(2 * f"processor\t: 0\nvendor_id\t: {maker}\ncpu family\t: 6\n", "ascii")
    assert is_intel(processor) == (maker == "GenuineIntel")


# ------------------------------------------------------------------------------------- freed memory


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


on_glibc = pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")


def faults(mode: str) -> int:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(Path.cwd())},
    )
    return int(process.stdout)


@on_glibc
def test_a_block_taken_again_after_it_was_freed_costs_no_page_faults() -> None:
    assert faults("keep") < NUM_PAGES // 1000


@on_glibc
def test_otherwise_the_block_is_faulted_in_again() -> None:
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
