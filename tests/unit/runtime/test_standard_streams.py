"""Input is read to its end, output loses nothing without an error, standard error never fails."""

import io
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import click
import pytest

from nmtkit.errors import ResourceError
from nmtkit.runtime import standard_streams
from tests.messages import refuses

OPENERS = {
    "stdout": standard_streams.open_standard_output,
    "stderr": standard_streams.open_standard_error,
}
TEXT = "Gr\u00fc\u00dfe\n" * 20_000


@pytest.mark.parametrize("is_buffered", [True, False])
@pytest.mark.parametrize("name", OPENERS)
def test_a_pipe_that_accepts_parts_gets_all_that_is_written(
    name: str, is_buffered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    received = []

    def wait(file: io.FileIO, event: int) -> None:
        assert (file.fileno(), event) == (writing, select.POLLOUT)
        received.append(os.read(reading, 5000))

    raw = io.FileIO(writing, "wb", closefd=False)
    buffer = io.BufferedWriter(raw) if is_buffered else raw
    monkeypatch.setattr(sys, name, io.TextIOWrapper(buffer, "utf-8"))
    monkeypatch.setattr(standard_streams, "_wait", wait)
    OPENERS[name]()
    stream = getattr(sys, name)
    stream.buffer.write(TEXT.encode())
    click.echo(TEXT, nl=False, err=name == "stderr")
    stream.write(TEXT)
    os.close(writing)
    assert len(received) > 1  # the pipe was full
    with os.fdopen(reading, "rb") as pipe:
        assert (b"".join(received) + pipe.read()).decode() == TEXT * 3


READERS: dict[str, Callable[[BinaryIO], bytes]] = {
    "lines": b"".join,
    "size": lambda stream: stream.read(100),
    "all": lambda stream: stream.read(),
    "unbuffered": lambda stream: cast(io.BufferedReader, stream).raw.read(),
    "peek": lambda stream: b"".join(iter(lambda: stream.peek(1) and stream.read1(3), b"")),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_pipe_that_pauses_is_read_to_its_end(
    read: Callable[[BinaryIO], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    parts = [b"a\nb", b"c\n", b"d"]

    def wait(file: io.FileIO, event: int) -> None:
        assert (file.fileno(), event) == (reading, select.POLLIN)
        if parts:
            os.write(writing, parts.pop(0))
        else:
            os.close(writing)

    with os.fdopen(reading, encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        monkeypatch.setattr(standard_streams, "_wait", wait)
        standard_streams.open_standard_input()
        assert sys.stdin.fileno() == reading
        assert read(sys.stdin.buffer) == b"a\nbc\nd"


@pytest.mark.parametrize("name", OPENERS)
def test_a_stream_keeps_its_encoding_and_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "out").open("w", encoding="latin-1", errors="replace") as out:
        monkeypatch.setattr(sys, name, out)
        OPENERS[name]()
        click.echo("Gr\u00fc\u00dfe \u20ac", err=name == "stderr")
        assert getattr(sys, name).fileno() == out.fileno()
        assert not getattr(sys, name).isatty()
    assert (tmp_path / "out").read_bytes() == b"Gr\xfc\xdfe ?\n"


def test_a_write_to_a_closed_standard_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    standard_streams.open_standard_output()
    for write in (
        click.echo,
        sys.stdout.write,
        lambda text: sys.stdout.buffer.write(text.encode()),
    ):
        with refuses(ResourceError, "output"):
            write("a")
    sys.stdout.flush()


@pytest.mark.parametrize("path", ["/dev/full", "pipe"])
def test_standard_error_drops_what_cannot_be_written(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "pipe":
        reading, descriptor = os.pipe()
        os.close(reading)
    else:
        descriptor = os.open(path, os.O_WRONLY)
    with io.TextIOWrapper(io.FileIO(descriptor, "wb"), "utf-8") as broken:
        monkeypatch.setattr(sys, "stderr", broken)
        standard_streams.open_standard_error()
        assert sys.stderr.write(TEXT) == len(TEXT)
        assert sys.stderr.buffer.write(TEXT.encode()) == len(TEXT.encode())
        click.echo(TEXT, err=True)
        sys.stderr.flush()
        monkeypatch.undo()


FILLS = """
import os, sys
from nmtkit.runtime.standard_streams import open_standard_error
open_standard_error()
file = open("file", "w")
os.write(1, b"by a library")
os.write(2, b"by a library")
file.write(f"{file.fileno() > 2} {os.get_inheritable(1)} {os.get_inheritable(2)}")
print("a message", file=sys.stderr)
"""


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    line = 'cd "$2" && exec "$0" -c "$1" <&- >&- 2>&-'
    arguments = ("sh", "-c", line, sys.executable, FILLS, str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    assert os.spawnvpe(os.P_WAIT, "sh", arguments, environment) == 0
    assert (tmp_path / "file").read_text(encoding="ascii") == "True True True"
