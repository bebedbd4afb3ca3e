"""A translation from file to file that ends at any moment ends as if it had not, with one command.

tests/unit/storage/test_growing_file.py damages the files between two sessions.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from nmtkit_cli.command_line import run
from tests.faults.harness import Fault, fault_points, run_in_child, start, wait
from tests.folders import names_in
from tests.integration.test_translate_workers import workers_of
from tests.launching import TIMEOUT_S, is_running, wait_for
from tests.messages import check_errors
from tests.thoroughness import sample
from tests.tiny import WORDS, write_tiny_model

KILLS = 6
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


def num_done(root: Path, chunk_lines: int) -> int:
    """Return the number of whole chunks that are there."""
    path = root / "out.gz.partial"
    return path.read_bytes().count(b"\n") // chunk_lines if path.exists() else 0


def has_done(root: Path, chunk_lines: int, num_chunks: int) -> bool:
    return num_done(root, chunk_lines) >= num_chunks


@pytest.mark.thorough
def test_it_ends_with_the_same_bytes_after_kills_at_random_moments(
    model: Path, tmp_path: Path
) -> None:
    """Sessions record 0 to 5 chunks of 40, in any order, and are killed a moment later."""
    seed = random.SystemRandom().randrange(2**32)  # other moments in every run of the test
    draw, log = random.Random(seed), tmp_path / "log"
    undisturbed, root = (prepare(tmp_path / name, 200) for name in ("undisturbed", "stormy"))
    begin = time.monotonic()
    assert wait(start(partial(translate, model, undisturbed, 5), log)) == 0
    chunk_s = (time.monotonic() - begin) / 40
    continued, killed_after = [], []
    for num_chunks in draw.sample(range(KILLS), KILLS):
        num_before = num_done(root, 5)
        child = start(partial(translate, model, root, 5), log)
        wait_for(partial(has_done, root, 5, num_before + num_chunks))
        time.sleep(draw.uniform(0, chunk_s))
        os.killpg(child, signal.SIGKILL)
        assert wait(child) == -signal.SIGKILL, seed
        killed_after.append(num_done(root, 5))
        continued += [num_before] if num_before and num_chunks else []
    assert len({*killed_after}) >= KILLS - 1, (seed, killed_after)
    assert wait(start(partial(translate, model, root, 5), log)) == 0, log.read_text()
    talk = log.read_text()
    for num_chunks in (*continued, killed_after[-1]):
        assert f"continuing after line {5 * num_chunks} of 200\n" in talk, (seed, killed_after)
    assert whole(root) == whole(undisturbed), seed
    assert names_in(root) == ["out.gz", "text"]


# ------------------------------------------------------- two processes

LOST = r"nmtkit: error: .*\n"
INTERRUPTED = "nmtkit: interrupted\n"


@pytest.fixture(scope="module")
def expected(model: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the translation of 200 lines by two processes that nothing disturbs."""
    root = prepare(tmp_path_factory.mktemp("undisturbed") / "root", 200)
    process = by_two_processes(model, root)
    _, talk = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, talk
    return (root / "out.gz").read_bytes()


def by_two_processes(model: Path, root: Path) -> "subprocess.Popen[bytes]":
    """Start the translation of a text in a process group of its own."""
    files = ["--input", str(root / "text"), "--output", str(root / "out.gz")]
    settings = ["--chunk-lines", "4", "--threads", "2", "--sample", "--devices", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "nmtkit_cli", "translate", str(model), *files, *settings],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def group_of(process: int) -> list[int]:
    """Return the running processes of the group that a process began."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended since
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == process:
                found += [int(entry.name)] if is_running(int(entry.name)) else []
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "to", "code", "message"),
    [
        (signal.SIGKILL, "command", -signal.SIGKILL, ""),
        (signal.SIGKILL, "worker", 7, LOST),
        (signal.SIGINT, "all", 130, INTERRUPTED),
    ],
    ids=["the command is killed", "a worker is killed", "Ctrl-C"],
)
def test_two_processes_continue_with_the_same_bytes(
    number: signal.Signals,
    to: str,
    code: int,
    message: str,
    model: Path,
    expected: bytes,
    tmp_path: Path,
) -> None:
    root = prepare(tmp_path / "root", 200)
    process = by_two_processes(model, root)
    wait_for(lambda: has_done(root, 4, 3) or process.poll() is not None)
    everyone = group_of(process.pid)
    assert len(everyone) >= 3
    if to == "all":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if to == "command" else workers_of(process.pid)[1], number)
    _, talk = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, talk
    reported = r"translating 200 lines of .*\n(translated .* lines.*\n)*"  # on a slow machine
    assert re.fullmatch(reported + message, talk.decode()), talk
    if message is LOST:
        check_errors(talk.decode(), code, "process; --devices --max-tokens")
    wait_for(lambda: not any(map(is_running, everyone)) and not group_of(process.pid))
    num_recorded = num_done(root, 4)
    assert num_recorded >= 3
    assert whole(root) is None
    process = by_two_processes(model, root)
    _, talk = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, talk
    assert talk.startswith(b"continuing after line %d of 200\n" % (4 * num_recorded))
    assert whole(root) == expected
    assert names_in(root) == ["out.gz", "text"]
    wait_for(lambda: not group_of(process.pid))
