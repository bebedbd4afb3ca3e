"""The display of training: live on a terminal, plain lines elsewhere.

records.py declares the displayed fields and their formats.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TextIO

from nmtkit.progress.records import Record, TrainingRecord, ValidationRecord, displays

if TYPE_CHECKING:
    from rich.console import Group

BAR_WIDTH = 40


class ProgressReporter(Protocol):
    """Displays a run."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Begin, after `update` of `max_updates` updates and these validations."""

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Refresh a live display between two reports."""

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation."""

    def message(self, text: str) -> None:
        """Show one line; also before the start and after the end."""

    def close(self) -> None:
        """End."""


def make_reporter(stream: TextIO) -> ProgressReporter:
    """Return a live display for a terminal that can show one, and plain lines for the rest."""
    can_move_cursor = os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    return (
        TerminalReporter(stream) if stream.isatty() and can_move_cursor else PlainReporter(stream)
    )


class PlainReporter:
    """One line of key=value per event."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._max_updates = 0
        self._best_update = 0

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Write where the run begins."""
        self._max_updates = max_updates
        self._best_update = next((v.update for v in reversed(validations) if v.is_best), 0)
        self.message(f"event=start update={update}/{max_updates}")

    def update(self, record: TrainingRecord) -> None:
        """Write a line of progress."""
        self._event("training", record)

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Write nothing; there would be too many lines."""

    def validation(self, record: ValidationRecord) -> None:
        """Write a line of validation."""
        self._best_update = record.update if record.is_best else self._best_update
        self._event("validation", record, f"best_update={self._best_update}")

    def message(self, text: str) -> None:
        """Write a line; training continues when the stream is closed."""
        with suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is written already."""

    def _event(self, event: str, record: TrainingRecord | ValidationRecord, *more: str) -> None:
        place = f"event={event} update={record.update}/{self._max_updates}"
        texts = [display.plain(value) for display, value in displays(record)]
        self.message(" ".join(filter(None, [place, *texts, *more])))


class SilentReporter:
    """Displays nothing: only the first rank reports."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Do nothing."""

    def update(self, record: TrainingRecord) -> None:
        """Do nothing."""

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Do nothing."""

    def validation(self, record: ValidationRecord) -> None:
        """Do nothing."""

    def message(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class TerminalReporter:
    """A display of a few lines below the printed messages."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream)
        # Refreshed by records only: a thread would take CPU time from training.
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._max_updates = 0
        self._update = 0
        self._training: TrainingRecord | None = None
        self._validation: ValidationRecord | None = None
        self._best: ValidationRecord | None = None

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Open the display."""
        self._max_updates, self._update = max_updates, update
        for record in validations:
            self._note(record)
        with suppress(OSError):
            self._live.start()
        self._show()

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""
        self._update, self._training = record.update, record
        self._show()

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Show progress between two reports."""
        self.update(record())

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation."""
        self._note(record)
        self._show()

    def message(self, text: str) -> None:
        """Print a line above the display; training continues when the terminal is gone."""
        with suppress(OSError):
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the last state on the screen."""
        with suppress(OSError):
            self._live.stop()

    def _note(self, record: ValidationRecord) -> None:
        self._validation = record
        self._best = record if record.is_best else self._best

    def _show(self) -> None:
        with suppress(OSError):
            self._live.update(self._rendered(), refresh=True)

    def _rendered(self) -> "Group":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        done = Table.grid(padding=(0, 2))
        bar = ProgressBar(self._max_updates, self._update, BAR_WIDTH)
        done.add_row(bar, f"update {self._update}/{self._max_updates}")
        lines = _rows(self._training) if self._training else []
        for name, record in (("validation", self._validation), ("best", self._best)):
            if record:
                lines += [f"{name} at update {record.update}: {row}" for row in _rows(record)]
        return Group(done, *map(Text, lines))


def _rows(record: Record) -> list[str]:
    """Write a record for the live display."""
    rows: dict[int, list[str]] = {}
    for display, value in displays(record):
        rows.setdefault(display.row, []).append(display.terminal(value))
    return ["  ".join(filter(None, texts)) for _, texts in sorted(rows.items())]
