"""The display of a run on a stream: live on a terminal, plain lines elsewhere, or none."""

import os
from collections.abc import Callable, Sequence
from typing import Protocol, TextIO

from nmtkit.progress.plain import PlainReporter
from nmtkit.progress.records import TrainingRecord, ValidationRecord
from nmtkit.progress.terminal import TerminalReporter


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
