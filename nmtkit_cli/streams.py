"""The streams of commands: bytes in, lines of UTF-8 out, messages on standard error.

Text is UTF-8 in every locale, and LF ends a line.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from nmtkit.errors import ConfigError
from nmtkit.units import printable

if TYPE_CHECKING:
    from nmtkit.progress.counting import WorkReporter


def standard_input() -> BinaryIO:
    """Return standard input as a byte stream; ConfigError if it is closed."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed; redirect a file into it")
    return sys.stdin.buffer


@contextmanager
def open_text(path: Path | None) -> Iterator[tuple[BinaryIO, str]]:
    """Open a text, gzipped or not, or standard input (None); yield it with its name.

    The name has U+FFFD for what is not UTF-8.
    """
    from nmtkit.text.lines import open_bytes

    if path is None:
        yield standard_input(), "standard input"
    else:
        with open_bytes(path) as stream:
            yield stream, os.fsencode(path).decode(errors="replace")


@contextmanager
def open_pairs(
    source: Path | None, target: Path | None, warn: Callable[[str], None] | None = None
) -> Iterator[Iterator[tuple[str, str]]]:
    """Open two texts as `open_text` does; yield the pairs of their lines."""
    from nmtkit.text.lines import decode_lines, pair_lines

    with open_text(source) as (sources, name), open_text(target) as (targets, other_name):
        texts = decode_lines(sources, name, warn), decode_lines(targets, other_name, warn)
        yield pair_lines(*texts, (name, other_name))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output and flush."""
    write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_report(lines: Iterable[str]) -> None:
    """Write lines about texts and models to standard output; control characters are escaped."""
    write_lines(map(printable, lines))


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output and flush."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """Write a line, or several, to standard error; control characters as escape sequences.

    Not by click, which would write to the terminal below a live line; see `progress/counting.py`.
    """
    sys.stderr.write("".join(f"{printable(line)}\n" for line in text.split("\n")))
    sys.stderr.flush()


def warn(text: str) -> None:
    """Write a warning to standard error, on one line."""
    say("nmtkit: warning: " + text.replace("\n", " "))


def say_opening(*models: Path) -> None:
    """Report on a terminal what is opened, before PyTorch is imported, which takes seconds."""
    if sys.stderr.isatty():
        say(f"opening {' and '.join(map(str, models))} (loading PyTorch)")


@contextmanager
def prompting(text: BinaryIO) -> Iterator[Callable[[], None]]:
    """Announce on a terminal that lines can be typed; yield a function that asks for the next one.

    It asks only where its prompt and the answers are on the terminal where the lines are typed.

    Args:
        text: standard input.
    """
    is_typed = text.isatty() and sys.stderr.isatty()
    has_prompt = is_typed and sys.stdout.isatty()

    def ask() -> None:
        if has_prompt:
            click.echo("> ", nl=False, err=True)

    if is_typed:
        say("ready: type a line, Ctrl-D ends")
    try:
        ask()
        yield ask
    finally:
        if has_prompt:
            say("")  # ends the line of the last prompt


def work_reporter() -> "WorkReporter":
    """Return the reporter of a command that writes no lines while it works."""
    from nmtkit.progress.counting import WorkReporter, can_draw

    return WorkReporter(say, sys.stderr if can_draw(sys.stderr) else None)


def line_reporter() -> "WorkReporter":
    """Return the reporter of a command whose work is written to standard output line by line.

    It is silent if the lines and the reports would be on a terminal together.
    """
    from nmtkit.progress.counting import SILENT

    return SILENT if sys.stdout.isatty() and sys.stderr.isatty() else work_reporter()
