"""A translation from file to file that ends at any moment ends as if it had not, with one command.

tests/unit/storage/test_growing_file.py damages the files between two sessions.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from nmtkit_cli.command_line import run
from tests.faults.harness import Fault, fault_points, run_in_child
from tests.folders import names_in
from tests.integration.test_translate_workers import workers_of
from tests.launching import TIMEOUT_S, wait_for
from tests.messages import check_errors
from tests.thoroughness import sample
from tests.tiny import WORDS, write_tiny_model

END = {"kill": "", "enospc": "SystemExit: 5", "signal": f"SystemExit: {128 + signal.SIGTERM}"}


class Signal(Fault):
    """A signal before a change, instead of an error."""

    def before_change(self) -> None:
        self.num_changes += 1
        if self.num_changes == self.at:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "model")


def prepare(root: Path, num_lines: int) -> Path:
    """Write a text into a new folder."""
    root.mkdir()
    draw = random.Random(num_lines)
    lines = (" ".join(draw.choices(WORDS, k=draw.randint(0, 6))) for _ in range(num_lines))
    (root / "text").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return root


def translate(model: Path, root: Path, chunk_lines: int) -> None:
    """Translate the text in a folder; SystemExit with the exit code, unless it is 0."""
    files = ["--input", str(root / "text"), "--output", str(root / "out.gz"), "--overwrite"]
    settings = ["--chunk-lines", str(chunk_lines), "--threads", "1", "--sample"]
    if code := run(["translate", str(model), *files, *settings]):
        sys.exit(code)


def whole(root: Path) -> bytes | None:
    return (root / "out.gz").read_bytes() if (root / "out.gz").exists() else None


@pytest.mark.sampled
@pytest.mark.parametrize("mode", END)
def test_it_is_continued_with_the_same_bytes(mode: str, model: Path, tmp_path: Path) -> None:
    """Each mode has every third change, and together they have all."""
    undisturbed = prepare(tmp_path / "undisturbed", 5)
    points = fault_points(partial(translate, model, undisturbed, 2))
    expected = whole(undisturbed)
    assert len(points) > 20
    for point in sample(points[[*END].index(mode) :: len(END)], 7, mode):
        root = prepare(tmp_path / str(point), 5)
        (root / "out.gz").write_bytes(b"old")
        fault = Signal(mode, point) if mode == "signal" else Fault(mode, point)
        outcome = run_in_child(partial(translate, model, root, 2), fault)
        assert outcome.is_killed == (mode == "kill")
        assert outcome.exception == END[mode], point
        assert whole(root) in (b"old", expected)
        outcome = run_in_child(partial(translate, model, root, 2), Fault("count", 0))
        assert outcome.exception == ""
        assert whole(root) == expected, point
        assert names_in(root) == ["out.gz", "text"]
        shutil.rmtree(root)


def by_two_processes(model: Path, root: Path) -> "subprocess.Popen[bytes]":
    """Start the translation of the text in a folder, in chunks of four lines."""
    files = ["--input", str(root / "text"), "--output", str(root / "out.gz")]
    settings = ["--chunk-lines", "4", "--threads", "2", "--sample", "--devices", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "nmtkit_cli", "translate", str(model), *files, *settings],
        stderr=subprocess.PIPE,
    )


def num_done(root: Path) -> int:
    """Return the number of whole chunks of four lines that are there."""
    path = root / "out.gz.partial"
    return path.read_bytes().count(b"\n") // 4 if path.exists() else 0


@pytest.mark.thorough
def test_two_processes_of_which_one_was_killed_continue_with_the_bytes_of_one(
    model: Path, tmp_path: Path
) -> None:
    alone, root = (prepare(tmp_path / name, 60) for name in ("alone", "root"))
    outcome = run_in_child(partial(translate, model, alone, 4), Fault("count", 0))
    assert outcome.exception == ""
    with by_two_processes(model, root) as process:
        wait_for(lambda: num_done(root) >= 3 or process.poll() is not None)
        os.kill(workers_of(process.pid)[1], signal.SIGKILL)
        _, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 7, told
    check_errors(told.decode(), 7, "process; --devices --max-tokens")
    assert whole(root) is None
    num_recorded = num_done(root)
    with by_two_processes(model, root) as process:
        _, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, told
    assert told.startswith(b"continuing after line %d of 60\n" % (4 * num_recorded))
    assert whole(root) == whole(alone)
    assert names_in(root) == ["out.gz", "text"]
