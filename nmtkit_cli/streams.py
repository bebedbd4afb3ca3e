"""What commands read and write: bytes in, lines of UTF-8 out, messages on standard error.

Text is UTF-8 in every locale, and LF ends a line.
"""

import sys
from collections.abc import Callable, Iterable
from typing import BinaryIO

import click

from nmtkit.errors import ConfigError

REPORT_S = 10.0
"""Shortest time between two progress reports."""


def standard_input() -> BinaryIO:
    """Return standard input as a byte stream; ConfigError if it is closed."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed; redirect a file into it")
    return sys.stdin.buffer


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output and flush."""
    write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output and flush."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Progress:
    """Progress reports: lines done and speed, at most every `REPORT_S` seconds."""

    def __init__(self, verb: str, clock: Callable[[], float]) -> None:
        """Begin.

        Args:
            verb: the past participle in reports, such as "translated".
            clock: returns the time in seconds, from any origin.
        """
        self._verb = verb
        self._clock = clock
        self._begin = self._reported = clock()
        self._num_lines = self._num_reported = self._num_tokens = 0

    def add(self, num_lines: int, num_tokens: int) -> None:
        """Count finished lines and their target tokens."""
        self._num_lines += num_lines
        self._num_tokens += num_tokens
        now = self._clock()
        if num_lines and now - self._reported > REPORT_S:
            self._reported = now
            self._report()

    def end(self) -> None:
        """Report the last lines, if there was a report before."""
        if 0 < self._num_reported < self._num_lines:
            self._report()

    def _report(self) -> None:
        seconds = self._clock() - self._begin
        self._num_reported = self._num_lines
        say(
            f"{self._verb} {counted(self._num_lines, 'lines')}, "
            f"{self._num_lines / seconds:.1f} lines/s, "
            f"{self._num_tokens / seconds:,.0f} target tokens/s"
        )


def say(text: str) -> None:
    """Write a line to standard error."""
    click.echo(text, err=True)


def counted(number: float, units: str) -> str:
    """Return a number with separators and its unit, which is given in the plural or empty."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{digits} {units.removesuffix('s') if number == 1 else units}".rstrip()


def warn(text: str) -> None:
    """Write a warning to standard error, on one line."""
    say("nmtkit: warning: " + text.replace("\n", " "))
