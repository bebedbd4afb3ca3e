"""The standard streams: bytes in, lines of UTF-8 out, talk on standard error.

Whatever the locale says, text is UTF-8, and LF ends a line.
"""

import select
import sys
import time
from collections.abc import Iterable
from io import FileIO, TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO

import click

from nmtkit.errors import ConfigError, ResourceError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

REPORT_S = 10.0
"""Progress is told this often."""


def standard_input() -> BinaryIO:
    """Return standard input as bytes; ConfigError where it is closed."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed; redirect a file into it")
    return sys.stdin.buffer


class StandardOutput(FileIO):
    """Standard output, unbuffered; a write returns when all of it is written.

    A disk that is nearly full and a non-blocking pipe take a part of a write. Python's own stream
    loses the rest of it where PYTHONUNBUFFERED is set, and where the pipe is full.
    """

    def write(self, data: "ReadableBuffer") -> int:
        """Write all of the data; waits while a non-blocking pipe is full."""
        remaining = memoryview(data).cast("B")
        num_bytes = len(remaining)
        while remaining:
            num_written = super().write(remaining)
            if num_written is None:
                select.select([], [self], [])
            else:
                remaining = remaining[num_written:]
        return num_bytes


def open_standard_output() -> None:
    """Let `sys.stdout`, unless it is closed, write through a `StandardOutput`."""
    if sys.stdout is not None:
        file = StandardOutput(sys.stdout.fileno(), "wb", closefd=False)
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = TextIOWrapper(file, encoding, errors, write_through=True)


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output and flush; ResourceError where it is closed."""
    write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output and flush; ResourceError where it is closed."""
    if sys.stdout is None:
        raise ResourceError("standard output is closed; redirect it into a file")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Progress:
    """Tells how far a long reading of lines is, and how fast, every so many seconds."""

    def __init__(self, verb: str) -> None:
        """Begin; the verb says what is done with lines: translated."""
        self._verb = verb
        self._begin = self._told = time.monotonic()
        self._num_lines = self._num_told = self._num_tokens = 0

    def add(self, num_lines: int, num_tokens: int) -> None:
        """Count what is done."""
        self._num_lines += num_lines
        self._num_tokens += num_tokens
        if time.monotonic() - self._told > REPORT_S:
            self._told = time.monotonic()
            self._tell()

    def end(self) -> None:
        """Tell of the last lines, if any were told of."""
        if 0 < self._num_told < self._num_lines:
            self._tell()

    def _tell(self) -> None:
        seconds = time.monotonic() - self._begin
        self._num_told = self._num_lines
        say(
            f"{self._verb} {counted(self._num_lines, 'lines')}, "
            f"{self._num_lines / seconds:.1f} lines/s, "
            f"{self._num_tokens / seconds:,.0f} target tokens/s"
        )


def say(text: str) -> None:
    """Write a line to standard error."""
    click.echo(text, err=True)


def counted(number: float, units: str) -> str:
    """Return a number as people write it, with its unit (given in the plural) if it has one."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{digits} {units.removesuffix('s') if number == 1 else units}".rstrip()


def warn(text: str) -> None:
    """Write a warning to standard error, on one line."""
    say("nmtkit: warning: " + text.replace("\n", " "))
