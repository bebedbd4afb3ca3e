"""The display of a run on a stream: live on a terminal, plain lines elsewhere, or none.

`terminal.py` holds the live display.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TextIO

from nmtkit.progress.counting import can_draw
from nmtkit.progress.records import (
    TrainingRecord,
    ValidationProgress,
    ValidationRecord,
    displays,
)
from nmtkit.progress.terminal import TerminalReporter


class ProgressReporter(Protocol):
    """Displays a run."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Begin, after `update` of `max_updates` updates and these validations."""

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Show progress between two reports: after the first update, and for a live display."""

    def validating(self, update: int, num_lines: int) -> None:
        """Show that a validation of a number of lines begins."""

    def validation_progress(self, progress: ValidationProgress) -> None:
        """Show how far a part of the validation is."""

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation, which ends with this."""

    def message(self, text: str) -> None:
        """Show a text on one line; also before the start and after the end."""

    def close(self) -> None:
        """End."""


def make_reporter(stream: TextIO) -> ProgressReporter:
    """Return a live display for a terminal that can show one, and plain lines for the rest."""
    return TerminalReporter(stream) if can_draw(stream) else PlainReporter(stream)


class PlainReporter:
    """One line of key=value per event, after its local time."""

    def __init__(self, stream: TextIO, now: Callable[[], datetime] = datetime.now) -> None:
        self._stream = stream
        self._now = now
        self._max_updates = 0
        self._best_update = 0
        self._has_progress = False

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Write where the run begins."""
        self._max_updates = max_updates
        self._best_update = next((v.update for v in reversed(validations) if v.is_best), 0)
        self._write("start", update)

    def update(self, record: TrainingRecord) -> None:
        """Write a line of progress."""
        self._has_progress = True
        self._write(record.event, record.update, *_values(record))

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Write the first line of progress early, and nothing later, to limit their number."""
        if not self._has_progress:
            self.update(record())

    def validating(self, update: int, num_lines: int) -> None:
        """Write that a validation begins."""
        self._write("validating", update, f"lines={num_lines}")

    def validation_progress(self, progress: ValidationProgress) -> None:
        """Write nothing, to limit the number of lines."""

    def validation(self, record: ValidationRecord) -> None:
        """Write a line of validation, and one for each text of its samples."""
        self._best_update = record.update if record.is_best else self._best_update
        best = f"best_update={self._best_update}"
        self._write(record.event, record.update, *_values(record), best)
        for sample in record.samples:
            for name, text in sample.shown().items():
                self._write("sample", record.update, f"line={sample.line}", f"{name}={text}")

    def message(self, text: str) -> None:
        """Write a text on one line."""
        line = text.replace("\n", " ")
        self._stream.write(f"{self._now():%Y-%m-%d %H:%M:%S} {line}\n")
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is written already."""

    def _write(self, event: str, update: int, *values: str) -> None:
        place = f"event={event} update={update}/{self._max_updates}"
        self.message(" ".join([place, *values]))


def _values(record: TrainingRecord | ValidationRecord) -> list[str]:
    """Return the displayed values of a record as key=value."""
    return list(filter(None, (display.plain(value) for display, value in displays(record))))


class SilentReporter:
    """Displays nothing: only the first rank reports."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Do nothing."""

    def update(self, record: TrainingRecord) -> None:
        """Do nothing."""

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Do nothing."""

    def validating(self, update: int, num_lines: int) -> None:
        """Do nothing."""

    def validation_progress(self, progress: ValidationProgress) -> None:
        """Do nothing."""

    def validation(self, record: ValidationRecord) -> None:
        """Do nothing."""

    def message(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
