"""Standard output that takes a part of a write: a file that may not grow, a pipe that is full."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.folders import limit_file_size
from tests.messages import check_errors
from tests.tiny import write_lines, write_tiny_model

NUM_LINES = 200
MAX_FILE_BYTES = 500
COMMANDS = {
    "translate": "model",
    "score": "--model model --source source",
    "attention": "model --format json",
    "info": "--preset base --vocab-size 37000",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model and lines."""
    root = tmp_path_factory.mktemp("limited")
    write_tiny_model(root / "model")
    write_lines(root / "source", ["a b c"] * NUM_LINES)
    return root


def run(folder: Path, line: str, unbuffered: str, is_limited: bool) -> tuple[int, bytes, str]:
    """Return exit code, what is in the file behind standard output, and standard error."""
    with (folder / "source").open("rb") as stdin, (folder / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "nmtkit_cli", *line.split()],
            stdin=stdin,
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTHONUNBUFFERED": unbuffered},
            preexec_fn=partial(limit_file_size, MAX_FILE_BYTES)
            if is_limited
            else None,  # Python itself ignores SIGXFSZ
        )
    return done.returncode, (folder / "out").read_bytes(), done.stderr.decode()


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_takes_a_part_of_the_output_is_exit_5(
    command: str, unbuffered: str, folder: Path
) -> None:
    line = f"{command} {COMMANDS[command]}"
    code, whole, _ = run(folder, line, "", is_limited=False)
    assert code == 0
    assert len(whole) > MAX_FILE_BYTES
    code, part, told = run(folder, line, unbuffered, is_limited=True)
    assert (code, part) == (5, whole[:MAX_FILE_BYTES])
    check_errors(told, 5, f"standard output {os.strerror(errno.EFBIG)}")
    assert told.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_pipe_that_does_not_block_loses_nothing(folder: Path, unbuffered: str) -> None:
    reading, writing = os.pipe()
    capacity = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, resource.getpagesize())
    os.set_blocking(writing, False)
    (folder / "trees").write_bytes(b"(TOP (NN dog))\n" * capacity)
    with (
        (folder / "trees").open("rb") as trees,
        subprocess.Popen(
            [sys.executable, "-m", "nmtkit_cli", "trees", "words"],
            stdin=trees,
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTHONUNBUFFERED": unbuffered},
        ) as process,
    ):
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            assert pipe.read() == b"dog\n" * capacity
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait()) == (b"", 0)
