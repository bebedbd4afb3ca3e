"""What `nmtkit train` shows from its first second to its end: on a terminal, and in a log."""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import nmtkit_in_text
from tests.launching import SETTINGS, TIMEOUT_S, end, start
from tests.ranks import from_launcher
from tests.tiny import tiny_dataset
from tests.unit.progress.streams import Screen

NO_TORCH = """
import os, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os._exit(99)
sys.meta_path.insert(0, Refuse())
"""
"""Ends a process with code 99 when it begins to import torch."""

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "
ENDLESS = ("--max-updates", "1000000", "--validate-every", "5", "--validate-samples", "1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dataset(tmp_path_factory.mktemp("corpus"))


# ---------------------------------------------------------------------------------- first line


def train(data: Path, run: Path, *settings: str) -> tuple[int, str]:
    done = nmtkit_in_text("train", data, "--out", run, *SETTINGS.split(), *settings)
    return done.returncode, done.stderr


@pytest.mark.parametrize("devices", ["1", "2"])
def test_the_first_line_is_printed_before_torch_is_imported(
    devices: str, data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    code, talk = end(start(data, run, "--devices", devices, code=NO_TORCH))
    assert code == 99
    assert re.fullmatch(rf"{STAMP}training {run} on {data} \(loading PyTorch\)\n", talk)


def test_of_a_resumed_run_it_is_another(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (code, first), (_, second) = (
        train(data, run, "--max-updates", updates) for updates in ("5", "10")
    )
    assert code == 0, first
    assert re.match(rf"{STAMP}training {run} on ", first)
    assert re.match(rf"{STAMP}continuing {run} on ", second)


@pytest.mark.parametrize(
    ("environment", "is_printed"),
    [
        (from_launcher(), True),
        (from_launcher(RANK="1"), False),
        (from_launcher(NMTKIT_LAUNCHER="1"), False),
        ({"RANK": "1"}, True),
    ],
)
def test_one_process_prints_it_for_all_ranks(
    environment: dict[str, str],
    is_printed: bool,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, talk = end(start(data, tmp_path / "run", code=NO_TORCH))
    assert code == 99
    assert talk.count("\n") == is_printed


# ----------------------------------------------------------------------------------- plain log


def test_every_line_of_a_log_has_its_time_and_says_what_takes_long(
    data: Path, tmp_path: Path
) -> None:
    settings = ("--max-updates", "6", "--validate-every", "5", "--validate-samples", "2")
    code, talk = train(data, tmp_path / "run", *settings, "--max-tokens", "auto")
    assert code == 0, talk
    lines = [re.fullmatch(rf"{STAMP}(.*)", line) for line in talk.splitlines()]
    texts = [line[1] for line in lines if line]
    assert len(texts) == len(lines), talk
    begins = [text.split()[0] for text in texts if text.startswith("event=")]
    assert begins == [
        *("event=start", "event=training", "event=training"),
        *("event=validating", "event=validation", *["event=sample"] * 6, "event=training"),
        *("event=validating", "event=validation", *["event=sample"] * 6),
    ]
    assert "event=validating update=5/6 lines=3" in texts
    assert texts[1] == f"verifying the dataset {data}"


# ------------------------------------------------------------------------------------ terminal


@contextmanager
def training_in_a_terminal(
    data: Path, run: Path, width: int, term: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start training on a terminal; yield the process and the terminal's other side."""
    master, terminal = pty.openpty()
    resize(terminal, width)
    environment = {name: os.environ[name] for name in os.environ if name != "COLUMNS"}
    command = [sys.executable, "-m", "nmtkit_cli", "train", str(data), "--out", str(run)]
    process = subprocess.Popen(
        [*command, *SETTINGS.split(), *ENDLESS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        env={**environment, "TERM": term},
    )
    os.close(terminal)
    try:
        yield process, master
    finally:
        process.kill()
        process.wait(timeout=TIMEOUT_S)
        os.close(master)


def resize(terminal: int, width: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))


def follow(master: int, screen: Screen, until: str | None) -> None:
    """Copy what a terminal gets to a screen, until a text comes, or None = to the end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    shown = ""
    while until is None or until not in shown:
        try:
            text = decoder.decode(os.read(master, 4096))
        except OSError:  # the process has closed its side
            assert until is None, shown
            return
        screen.write(text)
        shown += text


def test_a_terminal_shows_one_display_after_resizes_and_a_stop(data: Path, tmp_path: Path) -> None:
    screen = Screen(width=200)  # the widest: what is drawn while it is resized must not wrap
    with training_in_a_terminal(data, tmp_path / "run", 160, "xterm") as (process, master):
        follow(master, screen, "best at update 5:")
        for width in (40, 200, 100):
            resize(master, width)
            process.send_signal(signal.SIGWINCH)
            follow(master, screen, "best at update")
        assert not screen.is_cursor_visible
        process.send_signal(signal.SIGINT)
        follow(master, screen, None)
        assert process.wait(timeout=TIMEOUT_S) == 130
    assert screen.is_cursor_visible
    shown = "\n".join(screen.rows())
    assert len(re.findall(r"update \d+/1000000", shown)) == 1
    assert len(re.findall(r"best at update \d+:", shown)) == 1
    assert re.search(r"update 5, validation line 1\n  source +a b\n  reference +A B\n", shown)
    *_, last = filter(None, screen.rows())
    assert "; run the same command again to continue" in last


@pytest.mark.thorough
def test_a_dumb_terminal_gets_plain_lines(data: Path, tmp_path: Path) -> None:
    screen = Screen(width=10_000)
    with training_in_a_terminal(data, tmp_path / "run", 80, "dumb") as (process, master):
        follow(master, screen, "event=validation update=5")
        process.send_signal(signal.SIGINT)
        follow(master, screen, None)
        assert process.wait(timeout=TIMEOUT_S) == 130
    assert "\x1b" not in screen.getvalue()
    *lines, stopped, _ = screen.rows()
    assert all(re.match(STAMP, line) for line in lines)
    assert "; run the same command again to continue" in stopped
