"""What needs no model answers without loading PyTorch, and help without any library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = ("torch", "sentencepiece", "numpy", "rich", "sacrebleu", "safetensors")
RUN = Path("tests/golden/formats/run").absolute()
SCORE = ("score", "--reference", "text")
TEXT = b"a b c d\n"


@pytest.mark.parametrize(
    ("arguments", "module", "not_loaded"),
    [
        (("--help",), "nmtkit_cli.main", LIBRARIES),
        (("train", "--help"), "nmtkit_cli.main", LIBRARIES),
        (("translate", "--help"), "nmtkit_cli.main", LIBRARIES),
        (("report", RUN, "--html", "page.html"), "nmtkit.reporting.page", LIBRARIES),
        (("info", RUN), "nmtkit.reporting.saved_model", ("torch",)),
        (SCORE, "sacrebleu", ("torch",)),
        ((*SCORE, "text", "--html", "page.html"), "nmtkit.reporting.systems.page", ("torch",)),
    ],
    ids=["help", "train", "translate", "report", "info", "score", "score with a page"],
)
def test_a_command_does_not_load_the_libraries_of_others(
    arguments: tuple[str | Path, ...], module: str, not_loaded: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nmtkit_cli", *arguments],
        input=TEXT,
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    told = done.stderr.decode().splitlines()
    imported = {message.rpartition("|")[2].strip() for message in told}
    assert module in imported
    assert imported.isdisjoint(not_loaded)
    assert done.stdout
