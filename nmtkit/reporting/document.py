"""Sections of a report, and how they are written as Markdown; page.py writes them as HTML."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Markdown reads underscores only at the ends of a word.
_SPECIAL = re.compile(r"[\\`*<>\[\]~#&]|\b_|_\b")
_MIN_WIDTH = 3  # of the rule below the header


@dataclass(frozen=True)
class Cell:
    """A cell of a table: plain text; the best value is printed bold."""

    text: str
    is_best: bool = False


NOTHING = Cell("-")
"""The cell of an unknown or missing value."""


@dataclass(frozen=True)
class Table:
    """Headers and rows of cells; the first cell of a row names the row.

    Attributes:
        headers, rows: its cells.
        has_sentences: cells hold sentences, which are left-aligned, and wrapped on a page.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    has_sentences: bool = False


@dataclass(frozen=True)
class Section:
    """A title with a table, sentences, or both below it."""

    title: str
    table: Table | None
    sentences: Sequence[str]


def markdown(sections: Sequence[Section]) -> list[str]:
    """Return sections as lines of Markdown."""
    lines = [line for section in sections for line in _section(section)]
    return lines[:-1]  # an empty line ends each section


def _section(section: Section) -> Iterator[str]:
    yield f"## {_escaped(section.title)}"
    yield ""
    if section.table is not None:
        yield from _table(section.table)
        yield ""
    if section.sentences:
        yield from (f"- {_escaped(sentence)}" for sentence in section.sentences)
        yield ""


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table: first column left-aligned, numbers right-aligned."""
    rows = [[_cell(Cell(header)) for header in table.headers]]
    rows += [[_cell(cell) for cell in row] for row in table.rows]
    widths = [max(_MIN_WIDTH, *map(len, column)) for column in zip(*rows, strict=True)]
    left, *right = widths
    align, end = (str.ljust, "-") if table.has_sentences else (str.rjust, ":")
    rule = ["-" * left, *("-" * (width - 1) + end for width in right)]
    for first, *others in (rows[0], rule, *rows[1:]):
        padded = [align(text, width) for text, width in zip(others, right, strict=True)]
        yield f"| {' | '.join([first.ljust(left), *padded])} |"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text).replace("|", r"\|")
    return f"**{text}**" if cell.is_best else text


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)
