"""Trees from standard input, and lines to standard output as they come."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import click

from nmtkit_cli.streams import counted, standard_input, warn, write_lines

if TYPE_CHECKING:
    from nmtkit.parsing.trees import Tree

NAME = "standard input"

_LINES_AT_ONCE = 1000

skip_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--skip-bad",
    is_flag=True,
    help="Leave malformed trees out, and tell how many there are, instead of ending at the first.",
)


def input_lines() -> Iterator[str]:
    """Return the lines of standard input."""
    from nmtkit.text.lines import decode_lines

    return decode_lines(standard_input(), NAME, "error", warn)


def input_trees(skip_bad: bool) -> "Iterator[Tree]":
    """Yield the trees of standard input; tell of those that are left out."""
    from nmtkit.parsing.trees import read_trees

    skipped: list[str] = []
    yield from read_trees(input_lines(), NAME, skipped.append if skip_bad else None)
    if skipped:
        warn(f"left out {counted(len(skipped), 'malformed trees')}; the first: {skipped[0]}")


def stream_lines(lines: Iterable[str]) -> None:
    """Write lines as they come, many at once."""
    from nmtkit.text.lines import numbered_chunks

    for _, chunk in numbered_chunks(lines, _LINES_AT_ONCE):
        write_lines(chunk)
