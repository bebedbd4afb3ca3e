"""Files that a command reads once may be pipes, as a shell's `<(command)` gives them."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.commands import nmtkit, nmtkit_in_text
from tests.faults.harness import fork
from tests.processes import wait_until_asleep
from tests.tiny import write_tiny_model

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
            wait_until_asleep(process.pid)
            process.send_signal(number)
            assert process.wait(timeout=60) == 128 + number
    finally:
        process.kill()
        process.wait()


OBJECT = b'{"source": "a", "translation": "b"}\n'
READERS: dict[str, tuple[str, bytes]] = {
    "translate": ("translate model", b"a b c\n"),
    "stream": ("translate model --stream", b"a b c\n"),
    "json": ("translate model --input-format json", OBJECT),
    "score": ("score --reference text", b"a b c\n"),
    "score by a model": ("score --model model --source text", b"a b c\n"),
    "rerank": ("rerank --features length", OBJECT),
    "trees": ("trees words", b"(S (NN dog))\n"),
    "attention": ("attention model --format json", b"a b c\n"),
}
PAUSES = 3
PAUSE_S = 0.05


def feed(pipe: int, text: bytes) -> None:
    """Write a text in parts that end within a line, each after the previous one was read."""
    size = len(text) // PAUSES
    for start in range(0, len(text), size):
        os.write(pipe, text[start : start + size])
        while fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) != bytes(4):
            time.sleep(PAUSE_S)
        time.sleep(PAUSE_S)  # the command reads again, and finds nothing
    os.close(pipe)


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_that_does_not_block_is_read_to_its_end(name: str, tmp_path: Path) -> None:
    line, text = READERS[name]
    text *= 5
    write_tiny_model(tmp_path / "model")
    (tmp_path / "text").write_bytes(b"a b c\n" * 5)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    writer = fork()
    if writer == 0:
        os.close(reading)
        feed(writing, text)
        os._exit(0)
    os.close(writing)
    done = nmtkit(*line.split(), stdin=reading, folder=tmp_path)
    os.close(reading)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    whole = nmtkit(*line.split(), stdin=text, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == whole.stdout != b""
