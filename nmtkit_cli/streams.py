"""The standard streams: bytes in, lines of UTF-8 out, talk on standard error.

Whatever the locale says, text is UTF-8, and LF ends a line.
"""

import sys
from collections.abc import Iterable
from typing import BinaryIO

import click

from nmtkit.errors import ConfigError, ResourceError


def standard_input() -> BinaryIO:
    """Return standard input as bytes; ConfigError where it is closed."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed; redirect a file into it")
    return sys.stdin.buffer


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output and flush; ResourceError where it is closed."""
    if sys.stdout is None:
        raise ResourceError("standard output is closed; redirect it into a file")
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()


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
