"""A standard error that cannot be written changes no exit code, no output and no file."""

import itertools
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import CLOSED, nmtkit
from tests.folders import contents
from tests.launching import SETTINGS, TIMEOUT_S, wait_for_checkpoint
from tests.thoroughness import sample
from tests.tiny import tiny_corpus, write_lines

KINDS = ("full", "closed terminal", "reader gone", "closed")
INVALID = b"a b\n\xff c\n"  # translate and attention warn about the second line
TREES = b"(TOP (NN dog))\n(TOP (NN\n(TOP (NN cat))\n"
CANDIDATES = b'{"source": "a b", "translation": "A B"}\n{"source": "a", "translation": "A"}\n'
TRAIN = f"{SETTINGS} --max-updates 4 --save-every 2 --threads 1"
CORPUS = "-s en -t de --train train --valid valid --segmentation words --workers 1"

COMMANDS: dict[str, tuple[str, bytes, int]] = {
    "preprocess": (f"{CORPUS} --out OUT", b"", 0),
    "info": ("data", b"", 0),
    "info --preset": ("base --vocab-size 37000", b"", 0),
    "train": (f"data --out OUT {TRAIN}", b"", 0),
    "average-checkpoints": ("run --last 2 --out OUT", b"", 0),
    "translate": ("run --threads 1", INVALID, 0),
    "shortlist": ("data --out OUT", b"", 0),
    "score": ("--reference reference", b"a b .\n", 0),
    "score --model": ("run --source valid.en --threads 1", b"A B\nH G F\nD D D D\n", 0),
    "rerank": ("--features forced:run --threads 1", CANDIDATES, 0),
    "rerank --tune": ("two --features length", CANDIDATES, 0),
    "attention": ("run --format json --threads 1", INVALID, 0),
    "report": ("run", b"", 0),
    "export": ("run marian OUT", b"", 2),
    "import": ("marian none OUT", b"", 2),
    "trees clean": ("--skip-malformed", TREES, 0),
    "trees words": ("--skip-malformed", TREES, 0),
    "trees linearize": ("--skip-malformed", TREES, 0),
    "trees restore": ("--words words", b"(TOP XX )TOP\n", 0),
    "trees tokenize": ("", b"He sleeps.\n", 0),
    "trees info": ("--skip-malformed", TREES, 0),
    "--debug": ("score --reference none", b"", 2),
    "xyzzy": ("", b"", 2),
}
"""Command lines whose messages matter, with standard input and exit code; OUT is a new path."""

NUMBERS = itertools.count()


@contextmanager
def broken(kind: str) -> Iterator[int]:
    """Yield a descriptor to which nothing can be written."""
    if kind == "closed":
        yield CLOSED
        return
    if kind == "full":
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        other, descriptor = pty.openpty() if kind == "closed terminal" else os.pipe()
        os.close(other)
    yield descriptor
    os.close(descriptor)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with text, a dataset and a run."""
    root = tmp_path_factory.mktemp("broken")
    tiny_corpus(root)
    write_lines(root / "reference", ["a b ."])
    write_lines(root / "two", ["A B", "A"])
    write_lines(root / "words", ["dog"])
    for line in (
        f"preprocess {CORPUS} --out data",
        f"train data --out run {TRAIN}",
    ):
        done = nmtkit(*line.split(), folder=root)
        assert done.returncode == 0, done.stderr
    return root


def outcome(folder: Path, name: str, stderr: int | None) -> tuple[int, bytes, list[str], bytes]:
    """Return the exit code, standard output, the files of OUT, and the messages of a command."""
    line, stdin, _ = COMMANDS[name]
    out = folder / f"out{next(NUMBERS)}"
    words = f"{name} {line}".replace("OUT", out.name).split()
    done = nmtkit(*words, stdin=stdin, folder=folder, stderr=stderr)
    return done.returncode, done.stdout, sorted(contents(out)), done.stderr


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_ends_as_with_a_good_one(name: str, folder: Path) -> None:
    *expected, messages = outcome(folder, name, None)
    assert expected[0] == COMMANDS[name][2], messages
    for kind in sample(KINDS, 4, name):
        with broken(kind) as stderr:
            *found, _ = outcome(folder, name, stderr)
            assert found == expected, kind


def start(line: str, folder: Path, stderr: int, **more: str) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own."""
    closing = "2>&-" if stderr == CLOSED else ""
    return subprocess.Popen(
        [
            "sh",
            "-c",
            f'exec "$@" {closing}',
            "sh",
            sys.executable,
            "-m",
            "nmtkit_cli",
            *line.split(),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if stderr == CLOSED else stderr,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), **more},
    )


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_process_keeps_the_exit_code(
    kind: str, unbuffered: str, folder: Path
) -> None:
    for line, stdin, expected in (
        ("trees words --skip-malformed", TREES, (b"dog\ncat\n", 0)),
        ("--debug score --reference none", b"", (b"", 2)),
    ):
        with broken(kind) as stderr:
            process = start(line, folder, stderr, PYTHONUNBUFFERED=unbuffered)
        out, _ = process.communicate(stdin, timeout=TIMEOUT_S)
        assert (out, process.returncode) == expected


@pytest.mark.parametrize(
    ("line", "stdin"),
    [
        (f"preprocess {CORPUS} --workers 2 --out workers", b""),
        pytest.param("translate run --devices 2", INVALID, marks=pytest.mark.thorough),
    ],
)
def test_workers_do_not_need_it(line: str, stdin: bytes, folder: Path) -> None:
    with broken("full") as stderr:
        process = start(line, folder, stderr)
    out, _ = process.communicate(stdin, timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert out.count(b"\n") == stdin.count(b"\n")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_training_that_is_stopped_ends_with_75(kind: str, folder: Path, tmp_path: Path) -> None:
    line = f"train data --out {tmp_path / 'run'} {SETTINGS} --max-updates 1000000"
    with broken(kind) as stderr, start(line, folder, stderr) as process:
        wait_for_checkpoint(tmp_path / "run", 5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 75


@pytest.mark.thorough
def test_training_continues_when_its_terminal_is_closed(folder: Path, tmp_path: Path) -> None:
    line = f"train data --out {tmp_path / 'run'} {SETTINGS} --max-updates 1000000"
    master, terminal = pty.openpty()
    with start(line, folder, terminal, TERM="xterm") as process:
        os.close(terminal)
        shown = b""
        while b"update 5/1000000" not in shown:
            shown += os.read(master, 4096)
        os.close(master)
        wait_for_checkpoint(tmp_path / "run", 50)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 75
