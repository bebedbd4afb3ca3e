"""What a report consists of, in whatever form it is written: sections, tables, sentences."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """A text in a table, plain; the best of its kind stands out."""

    text: str
    is_best: bool = False


NOTHING = Cell("-")
"""A cell for what is not known, or is not there."""


@dataclass(frozen=True)
class Table:
    """Rows of cells, one a header; the first cell of a row says what the row is about."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Section:
    """A title, and below it a table, sentences, or both."""

    title: str
    table: Table | None
    sentences: Sequence[str]
