"""Streams that displays write to."""

import io
import re

_TOKEN = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|(.)", re.DOTALL)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Screen(Terminal):
    """A terminal without reflow: the rows that it shows, and those that have left it at the top.

    Attributes:
        width: number of columns; may change at any time.
        is_cursor_visible: as the last control sequence set it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.is_cursor_visible = True
        self._rows = [""]
        self._row = self._column = 0

    def write(self, text: str) -> int:
        for control in _TOKEN.finditer(text):
            numbers, final, character = control.groups()
            if character is not None:
                self._print(character)
            elif final in ("h", "l"):
                self.is_cursor_visible = final == "h"
            elif final == "A":
                self._row -= int(numbers or 1)
                assert self._row >= 0, "the cursor leaves what was printed"
            elif final == "K":
                assert numbers == "2"
                self._rows[self._row] = ""
            else:
                assert final == "m", f"unknown control sequence: {control[0]!r}"
        return super().write(text)

    def rows(self) -> list[str]:
        """Return all rows, without spaces at their ends."""
        return [row.rstrip() for row in self._rows]

    def _print(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._line_feed()
        else:
            if self._column >= self.width:
                self._line_feed()
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + character + row[self._column + 1 :]
            self._column += 1

    def _line_feed(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append("")
