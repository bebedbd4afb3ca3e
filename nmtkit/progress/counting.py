"""Progress of a command's long work: a live line on a terminal, plain lines elsewhere.

Training has records and a display of its own, in `reporter.py`.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar, cast

from nmtkit.units import counted, duration

if TYPE_CHECKING:
    from rich.constrain import Constrain
    from rich.live import Live

Item = TypeVar("Item")

FIRST_REPORT_S = 1.0
"""Seconds of work before the first plain line; shorter work is silent."""
REPORT_S = 10.0
"""Seconds between two plain lines."""
REFRESH_S = 0.1
"""Seconds between two states of a live line."""
QUICK_ITEMS = 1000
"""Number of quick items, such as lines of text, that are counted together."""

MARGIN = 2
"""Columns on the right that stay free, so that the ^C of a terminal does not begin a new row."""

_BAR_WIDTH = 20
_MIN_WIDTH_WITH_BAR = 80


def can_draw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can redraw what it shows."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


class WorkReporter:
    """Prints the messages of a command, and the progress of its work."""

    def __init__(
        self,
        message: Callable[[str], None],
        terminal: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin.

        Args:
            message: prints a line.
            terminal: standard error, for live lines; None = plain lines.
            clock: returns the time in seconds, from any origin.
        """
        self.message, self.terminal, self.clock = message, terminal, clock

    def counting(
        self, verb: str, units: str, total: int | None = None, done: int = 0
    ) -> "Counting":
        """Begin to count work.

        Args:
            verb: past participle, such as "translated".
            units: what is counted, in the plural.
            total: the number at the end; None = unknown.
            done: the number that an earlier process has finished.
        """
        live = _LiveLine(self.terminal, total) if self.terminal else None
        return Counting(self, (verb, units, total, done), live)

    @contextmanager
    def track(
        self, items: Iterable[Item], verb: str, units: str, total: int | None = None, every: int = 1
    ) -> Iterator[Iterator[Item]]:
        """Enter an iterator that counts its items, `every` of them together; see `counting`.

        Counting ends with the context, so before an error of the code that uses the items is shown.
        """
        with self.counting(verb, units, total) as counting:
            yield counting.each(items, every)


class Counting:
    """Work that is counted while it is done; `WorkReporter.counting` makes it.

    As a context manager it ends with the context.
    """

    def __init__(
        self,
        reporter: WorkReporter,
        what: tuple[str, str, int | None, int],
        live: "_LiveLine | None",
    ) -> None:
        self._reporter, self._live = reporter, live
        self._verb, self._units, self._total, self._num_before = what
        self._begin = reporter.clock()
        self._due = self._begin + (0 if live else FIRST_REPORT_S)
        self._seconds = 0.0
        self._number = self._num_reported = self._num_before
        self._num_tokens = 0

    def add(self, number: int, num_tokens: int = 0) -> None:
        """Count finished work, and report it if a report is due.

        Args:
            number: finished units; without any, nothing is reported.
            num_tokens: their target tokens.
        """
        self._number += number
        self._num_tokens += num_tokens
        now = self._reporter.clock()
        self._seconds = now - self._begin
        if not number or now < self._due:
            return
        if self._live:
            self._due = now + REFRESH_S
            self._live.show(self._number, self._text())
        else:
            self._due = now + REPORT_S
            self._report()

    def each(self, items: Iterable[Item], every: int = 1) -> Iterator[Item]:
        """Yield items, and count `every` of them together when they are finished."""
        number = 0
        for number, item in enumerate(items, 1):
            yield item
            if number % every == 0:
                self.add(every)
        self.add(number % every)

    def end(self) -> None:
        """Remove a live line; report work of a second or longer as a last line."""
        if self._live:
            self._live.close()
        is_long = self._seconds >= FIRST_REPORT_S
        has_reports = self._num_reported > self._num_before
        if self._num_reported < self._number and (has_reports or (self._live and is_long)):
            self._report()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def _report(self) -> None:
        self._num_reported = self._number
        self._reporter.message(self._text())

    def _text(self) -> str:
        """Return the number, and after a second also the speed and the remaining time."""
        number, total = self._number, self._total
        is_unfinished = total is not None and number < total
        text = f"{self._verb} {counted(number, self._units)}"
        if total is not None and is_unfinished:
            of_total = f"{number:,} of {counted(total, self._units)}"
            text = f"{self._verb} {of_total} ({100 * number // total}%)"
        if self._seconds < FIRST_REPORT_S:
            return text
        rate = (number - self._num_before) / self._seconds
        texts = [text, f"{_rate(rate)} {self._units}/s"]
        if self._num_tokens:
            texts.append(f"{self._num_tokens / self._seconds:,.0f} target tokens/s")
        if total is not None and is_unfinished:
            texts.append(f"{duration((total - number) / rate)} left")
        return ", ".join(texts)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


class _LiveLine:
    """A line of a terminal, drawn by rich; whatever is written to standard error removes it.

    The next state draws it again, below what was written.
    """

    def __init__(self, terminal: TextIO, total: int | None) -> None:
        from rich.console import Console

        self._console = Console(file=terminal)
        self._total = total
        self._live: Live | None = None
        self._stderr = sys.stderr

    def show(self, number: int, text: str) -> None:
        """Draw a number and a text, cut to the width of the terminal."""
        live = self._live or self._open()
        live.update(self._line(number, text), refresh=True)

    def close(self) -> None:
        """Remove the line."""
        if self._live:
            live, self._live = self._live, None
            sys.stderr = self._stderr
            live.stop()

    def _open(self) -> "Live":
        from rich.live import Live

        # Without a thread, which would take CPU time from the work. Standard error is not
        # redirected by rich, which would wrap messages, and which click bypasses.
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self._stderr = sys.stderr
        sys.stderr = cast(TextIO, _AfterClose(self._stderr, self.close))
        return self._live

    def _line(self, number: int, text: str) -> "Constrain":
        from rich.constrain import Constrain
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        line = Table.grid(padding=(0, 1))
        cells: list[ProgressBar | Text] = [Text(text, no_wrap=True, overflow="crop")]
        if self._total is not None and self._console.width >= _MIN_WIDTH_WITH_BAR:
            cells.insert(0, ProgressBar(self._total, number, _BAR_WIDTH))
        line.add_row(*cells)
        return Constrain(line, max(1, self._console.width - MARGIN))


class _AfterClose:
    """A stream of text that closes a live line before anything is written."""

    def __init__(self, stream: TextIO, close: Callable[[], None]) -> None:
        self._stream = stream
        self._close = close

    def __getattr__(self, name: str) -> Any:
        if name in ("write", "writelines", "buffer"):
            self._close()
        return getattr(self._stream, name)


SILENT = WorkReporter(lambda _: None)
"""Prints nothing."""
