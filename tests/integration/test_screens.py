"""Screens of commands on a terminal: live lines, resized, without colours, on dumb terminals."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tiny import tiny_corpus, write_tiny_model

COMMAND = (sys.executable, "-m", "nmtkit_cli")
DEADLINE_S = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
BAR = "\u2501"
NARROW = 15
CHUNK = b"a b c\n" * 64


@dataclass
class Screen:
    """A terminal's other end, with all that was shown."""

    descriptor: int
    shown: str = ""

    def read(self) -> bool:
        """Read what is new; return False after the last process has closed the terminal."""
        try:
            data = os.read(self.descriptor, 2**16)
        except OSError:
            data = b""
        self.shown += data.decode()
        return bool(data)

    def read_all(self) -> str:
        while self.read():
            pass
        return self.shown

    def resize(self, columns: int) -> None:
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("screens") / "model")


@contextmanager
def on_screen(
    arguments: list[str], columns: int = 100, **environment: str
) -> Iterator[tuple["subprocess.Popen[bytes]", Screen]]:
    """Run a command whose messages are shown on a terminal; its other streams are pipes."""
    own, terminal = pty.openpty()
    screen = Screen(own)
    screen.resize(columns)
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**inherited, "TERM": "xterm-256color", **environment},
    ) as process:
        os.close(terminal)
        stopper = threading.Timer(DEADLINE_S, process.kill)
        stopper.start()
        try:
            yield process, screen
        finally:
            stopper.cancel()
            os.close(own)


def states(shown: str) -> list[str]:
    """Return the lines that were shown, each state of a live line on its own."""
    plain = CONTROL.sub("", shown)
    return [state.strip() for state in re.split("[\r\n]+", plain) if state.strip()]


def translate(model: Path, columns: int = 100, **environment: str) -> str:
    """Translate a chunk on a terminal; return what it shows."""
    with on_screen(["translate", str(model)], columns, **environment) as (process, screen):
        assert process.stdin is not None
        process.stdin.write(CHUNK)
        process.stdin.close()
        shown = screen.read_all()
        assert process.stdout is not None
        assert process.stdout.read().count(b"\n") == 64
    assert process.returncode == 0
    return shown


def test_translation_to_a_file_has_a_live_line(model: Path) -> None:
    shown = translate(model)
    opening, translated, *_ = states(shown)
    assert opening == f"opening {model} (loading PyTorch)"
    assert "translated 64 lines" in translated
    assert BAR not in shown  # the number of lines is unknown


@pytest.mark.thorough
def test_a_dumb_terminal_gets_no_control_sequences(model: Path) -> None:
    assert "\x1b" not in translate(model, TERM="dumb")


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["attention", "average-checkpoints"])
def test_commands_show_life_before_torch_is_loaded(
    command: str, model: Path, tmp_path: Path
) -> None:
    out = ["--out", str(tmp_path / "out")] if command == "average-checkpoints" else []
    with on_screen([command, str(model), *out]) as (process, screen):
        assert process.stdin is not None
        process.stdin.close()
        assert states(screen.read_all())[0] == f"opening {model} (loading PyTorch)"


@pytest.mark.parametrize("has_colour", [True, False])
def test_preprocess_shows_each_stage_and_keeps_its_lines(has_colour: bool, tmp_path: Path) -> None:
    train, valid = tiny_corpus(tmp_path)
    out = str(tmp_path / "data")
    texts = ["-s", "en", "-t", "de", "--train", train, "--valid", valid, "--out", out]
    options = ["--segmentation", "words", "--drop-duplicates", "--workers", "1"]
    no_color = "" if has_colour else "1"
    with on_screen(["preprocess", *texts, *options], NO_COLOR=no_color) as (process, screen):
        shown = screen.read_all()
    assert process.returncode == 0
    assert bool(COLOUR.search(shown)) == has_colour
    found = " ".join(states(shown))
    stages = (
        "reading",
        "read 10 pairs",
        "counting the words",
        "finding duplicates",
        "encoding 10 pairs",
    )
    places = [found.index(stage) for stage in stages]
    assert places == sorted(places)
    assert found.index("compared 10 pairs") < found.index("encoded 10 pairs")


@pytest.mark.thorough
def test_a_live_line_follows_the_size_of_its_terminal(model: Path) -> None:
    with on_screen(["translate", str(model)]) as (process, screen):
        assert process.stdin is not None
        assert process.stdout is not None
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        process.stdin.write(CHUNK)
        process.stdin.flush()
        while "translated" not in screen.shown:
            assert screen.read()
        screen.resize(NARROW)
        process.send_signal(signal.SIGWINCH)
        before = len(screen.shown)
        feeder = threading.Thread(target=feed, args=(process,))
        feeder.start()
        while not any(fits(state) for state in states(screen.shown[before:])):
            assert screen.read()
        feeder.join()
        process.stdin.close()
        screen.read_all()
        reader.join()
    assert process.returncode == 0


def fits(state: str) -> bool:
    """Return whether a state was cut to the narrow width, which is shorter than any whole one."""
    return state.startswith("translated") and len(state) <= NARROW < len("translated 1 line")


def feed(process: "subprocess.Popen[bytes]") -> None:
    """Give a process many more lines."""
    assert process.stdin is not None
    process.stdin.write(CHUNK * 40)
    process.stdin.flush()
