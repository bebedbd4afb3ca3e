"""`nmtkit translate` on terminals and in pipes: when lines are answered, and what is printed."""

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.processes import wait_until_asleep
from tests.tiny import write_tiny_model

COMMAND = (sys.executable, "-m", "nmtkit_cli", "translate")
LINES = (b"a b c\n", b"\n", b"d\n")
DEADLINE_S = 60


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("translate") / "model")


def converse(process: "subprocess.Popen[bytes]", keyboard: int) -> list[bytes]:
    """Write each line after the previous one is answered; return the answers."""
    assert process.stdout is not None
    stopper = threading.Timer(DEADLINE_S, process.kill)
    stopper.start()
    answers = []
    for line in LINES:
        os.write(keyboard, line)
        answers.append(process.stdout.readline())
    stopper.cancel()
    return answers


def test_on_a_terminal_each_line_is_answered_before_the_next_is_typed(model: Path) -> None:
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, str(model)], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(terminal)
        answers = converse(process, keyboard)
        os.write(keyboard, b"\x04")  # Ctrl-D
        rest, message = process.communicate(timeout=DEADLINE_S)
    os.close(keyboard)
    assert (process.returncode, rest, message) == (0, b"", b"")
    assert [answer.count(b"\n") for answer in answers] == [1, 1, 1]
    assert answers[1] == b"\n" != answers[0]


def test_in_a_pipe_a_stream_answers_each_line_before_the_next_is_written(model: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, str(model), "--stream"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        answers = converse(process, process.stdin.fileno())
        rest, message = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, rest, message) == (0, b"", b"")
    assert [answer.count(b"\n") for answer in answers] == [1, 1, 1]
    assert answers[1] == b"\n" != answers[0]


def read_until(screen: int, text: bytes) -> bytes:
    """Return what a terminal shows, until it shows a text."""
    shown = b""
    while text not in shown:
        shown += os.read(screen, 2**16)
    return shown


def test_a_terminal_says_when_it_is_ready_and_asks_for_each_line(model: Path) -> None:
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, str(model)], stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        stopper = threading.Timer(DEADLINE_S, process.kill)
        stopper.start()
        begin = read_until(keyboard, b"> ")
        os.write(keyboard, b"a b c\n")
        answer = read_until(keyboard, b"> ")
        os.write(keyboard, b"\x04")  # Ctrl-D
        end = read_until(keyboard, b"\r\n")
        stopper.cancel()
    os.close(keyboard)
    opening = f"opening {model} (loading PyTorch)\r\n".encode()
    assert begin == opening + b"ready: type a line, Ctrl-D ends\r\n> "
    typed, *translated, prompt = answer.split(b"\r\n")
    assert (typed, len(translated), prompt) == (b"a b c", 1, b"> ")
    assert end.endswith(b"\r\n")
    assert process.returncode == 0


def test_an_interrupted_terminal_ends_with_a_line_of_its_own(model: Path) -> None:
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, str(model)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    ) as process:
        os.close(terminal)
        read_until(keyboard, b"> ")
        wait_until_asleep(process.pid)
        process.send_signal(signal.SIGINT)
        end = read_until(keyboard, b"interrupted\r\n")
    os.close(keyboard)
    assert end == b"\r\nnmtkit: interrupted\r\n"
    assert process.returncode == 130


def test_an_interrupt_within_a_chunk_loses_no_finished_line(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"".join(LINES) * 20_000)
    options = ["--threads", "1", "--batch-size", "1"]
    with (
        text.open("rb") as source,
        subprocess.Popen(
            [*COMMAND, str(model), *options],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, message = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert message.endswith(b"nmtkit: interrupted\n")
    written = first + rest
    num_lines = written.count(b"\n")
    assert 0 < num_lines < 60_000
    assert written.endswith(b"\n")
    part = tmp_path / "part"
    part.write_bytes(b"".join((LINES * 20_000)[:num_lines]))
    with part.open("rb") as source:
        whole = subprocess.run(
            [*COMMAND, str(model), *options], stdin=source, capture_output=True, check=True
        )
    assert whole.stdout == written
