"""A translation from file to file that ends at any moment ends as if it had not, with one command.

tests/unit/storage/test_growing_file.py damages the files between two sessions.
"""

import os
import random
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from nmtkit_cli.command_line import run
from tests.faults.harness import Fault, fault_points, run_in_child, start, wait
from tests.folders import names_in
from tests.integration.test_translate_command import write
from tests.tiny import WORDS, tiny_codec

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
    return write(tmp_path_factory.mktemp("model") / "model", 1, tiny_codec())


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


@pytest.mark.parametrize("mode", END)
def test_it_is_continued_with_the_same_bytes(mode: str, model: Path, tmp_path: Path) -> None:
    """Each mode has every third change, and together they have all."""
    undisturbed = prepare(tmp_path / "undisturbed", 5)
    points = fault_points(partial(translate, model, undisturbed, 2))
    expected = whole(undisturbed)
    assert len(points) > 30
    for point in points[[*END].index(mode) :: len(END)]:
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


def test_it_ends_with_the_same_bytes_after_kills_at_random_moments(
    model: Path, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)  # other moments in every run of the test
    draw, log = random.Random(seed), tmp_path / "log"
    undisturbed, root = (prepare(tmp_path / name, 200) for name in ("undisturbed", "stormy"))
    begin = time.monotonic()
    assert wait(start(partial(translate, model, undisturbed, 5), log)) == 0
    longest_s = 2 * (time.monotonic() - begin) / KILLS
    for _ in range(KILLS):
        child = start(partial(translate, model, root, 5), log)
        time.sleep(draw.uniform(0, longest_s))
        os.killpg(child, signal.SIGKILL)
        assert wait(child) in (0, -signal.SIGKILL)
    assert wait(start(partial(translate, model, root, 5), log)) == 0, log.read_text()
    assert whole(root) == whole(undisturbed), seed
    assert names_in(root) == ["out.gz", "text"]
