"""The CPU is known by the system's description of it."""

from pathlib import Path

import pytest

from nmtkit.runtime.processor import (
    is_intel,
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
