"""What needs no model answers without loading PyTorch, and help without any library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = ("torch", "sentencepiece", "numpy", "rich", "sacrebleu", "safetensors")
RUN = Path("tests/golden/formats/run").absolute()
TEXT = b"a b c d\n"


@pytest.mark.parametrize(
    ("line", "module", "not_loaded"),
    [
        ("--help", "nmtkit_cli.main", LIBRARIES),
        ("train --help", "nmtkit_cli.main", LIBRARIES),
        ("translate --help", "nmtkit_cli.main", LIBRARIES),
        (f"report {RUN} --html page.html", "nmtkit.reporting.page", LIBRARIES),
        (f"info {RUN}", "nmtkit.reporting.saved_model", ("torch",)),
        ("score --reference text", "sacrebleu", ("torch",)),
        (
            "score --reference text text --html page.html",
            "nmtkit.reporting.systems.page",
            ("torch",),
        ),
    ],
)
def test_a_command_loads_what_it_needs_alone(
    line: str, module: str, not_loaded: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nmtkit_cli", *line.split()],
        input=TEXT,
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert module in imported
    assert imported.isdisjoint(not_loaded)
    assert done.stdout
