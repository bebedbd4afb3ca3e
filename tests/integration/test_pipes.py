"""Files that a command reads once may be pipes, as a shell's `<(command)` gives them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import nmtkit_in_text
from tests.messages import refused

TEXT = "one two three four five\nsix seven eight nine ten\n"


def in_shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of bash, in which `nmtkit` is this one."""
    function = f'nmtkit() {{ "{sys.executable}" -m nmtkit_cli "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", function + line], capture_output=True, text=True, check=False, timeout=60
    )


def test_systems_and_references_may_be_pipes(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT, "utf-8")
    text = f"<(cat '{tmp_path}/text')"
    done = in_shell(f"nmtkit score {text} --reference {text}")
    assert done.returncode == 0, done.stderr
    direct = nmtkit_in_text("score", tmp_path / "text", "--reference", tmp_path / "text")
    assert done.stdout.partition(" ")[2] == direct.stdout.partition(" ")[2] != ""


def test_a_recipe_may_be_a_pipe() -> None:
    done = in_shell(
        "nmtkit train --print-config --config <(nmtkit train --preset big --print-config)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == nmtkit_in_text("train", "--preset", "big", "--print-config").stdout


def test_a_recipe_that_is_too_long_is_refused_before_its_end() -> None:
    done = in_shell("nmtkit train --print-config --config <(yes '# more')")
    refused(done, 2, "262,144; --print-config", recorded=False)
    assert done.stderr.startswith("nmtkit: error: /dev/fd/")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_training_that_waits_for_its_recipe(
    number: signal.Signals, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "recipe")
    line = ["train", "data", "--out", "run", "--config", "recipe"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nmtkit_cli", *line],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    try:
        with (tmp_path / "recipe").open("w", encoding="utf-8"):  # now the command reads it
            process.send_signal(number)
            assert process.wait(timeout=60) == 128 + number
    finally:
        process.kill()
        process.wait()
