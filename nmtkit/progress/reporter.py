"""The display of a run on a stream: live on a terminal, plain lines elsewhere, or none.

`terminal.py` holds the live display.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TextIO

from nmtkit.progress.counting import can_draw
from nmtkit.progress.records import TrainingRecord, ValidationRecord, displays
from nmtkit.progress.terminal import TerminalReporter


class ProgressReporter(Protocol):
    """Displays a run."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Begin, after `update` of `max_updates` updates and these validations."""

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Refresh a live display between two reports."""

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation."""

    def message(self, text: str) -> None:
        """Show one line; also before the start and after the end."""

    def close(self) -> None:
        """End."""


def make_reporter(stream: TextIO) -> ProgressReporter:
    """Return a live display for a terminal that can show one, and plain lines for the rest."""
    return TerminalReporter(stream) if can_draw(stream) else PlainReporter(stream)


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
        self._write(record)

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Write nothing, to limit the number of lines."""

    def validation(self, record: ValidationRecord) -> None:
        """Write a line of validation."""
        self._best_update = record.update if record.is_best else self._best_update
        self._write(record, f"best_update={self._best_update}")

    def message(self, text: str) -> None:
        """Write a line."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is written already."""

    def _write(self, record: TrainingRecord | ValidationRecord, *more: str) -> None:
        place = f"event={record.event} update={record.update}/{self._max_updates}"
        texts = [display.plain(value) for display, value in displays(record)]
        self.message(" ".join(filter(None, [place, *texts, *more])))


class SilentReporter:
    """Displays nothing: only the first rank reports."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Do nothing."""

    def update(self, record: TrainingRecord) -> None:
        """Do nothing."""

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Do nothing."""

    def validation(self, record: ValidationRecord) -> None:
        """Do nothing."""

    def message(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
