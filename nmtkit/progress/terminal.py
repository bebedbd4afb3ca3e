"""The live display of a run on a terminal, drawn by rich."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from nmtkit.progress.counting import MARGIN
from nmtkit.progress.records import (
    Record,
    Sample,
    TrainingRecord,
    ValidationProgress,
    ValidationRecord,
    displays,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

BAR_WIDTH = 40

REDRAWS = 100
"""Largest number of redraws for the progress of a part of a validation."""


class TerminalReporter:
    """A display of a few lines below the printed messages."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream)
        # Refreshed by records only: a thread would take CPU time from training.
        self._live = Live(self, console=self._console, auto_refresh=False, redirect_stdout=False)
        self._max_updates = 0
        self._update = 0
        self._training: TrainingRecord | None = None
        self._validating: ValidationProgress | None = None
        self._validation: ValidationRecord | None = None
        self._best: ValidationRecord | None = None

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Open the display."""
        self._max_updates, self._update = max_updates, update
        for record in validations:
            self._note(record)
        self._live.start(refresh=True)

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""
        self._update, self._training = record.update, record
        self._live.refresh()

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Show progress between two reports."""
        self.update(record())

    def validating(self, update: int, num_lines: int) -> None:
        """Show that a validation begins."""
        self._update = update
        self._validating = ValidationProgress("lines", 0, num_lines)
        self._live.refresh()

    def validation_progress(self, progress: ValidationProgress) -> None:
        """Show how far a part of the validation is; redraws at most `REDRAWS` times."""
        is_other_part = self._validating is None or self._validating.counted != progress.counted
        if is_other_part or _redraw(progress.done, progress.total):
            self._validating = progress
            self._live.refresh()

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation, and print its samples above the display."""
        self._validating = None
        self._note(record)
        for sample in record.samples:
            self._print_sample(record.update, sample)
        self._live.refresh()

    def message(self, text: str) -> None:
        """Print a text above the display, on one line."""
        self._console.print(text.replace("\n", " "), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the last state on the screen, without a validation that was not finished."""
        self._validating = None
        self._live.stop()

    def _note(self, record: ValidationRecord) -> None:
        self._validation = record
        self._best = record if record.is_best else self._best

    def _print_sample(self, update: int, sample: Sample) -> None:
        """Print a sample, its texts truncated to the width of the terminal."""
        from rich.text import Text

        self.message(f"update {update}, validation line {sample.line}")
        for name, text in sample.shown().items():
            line = Text(f"  {name:<11}{text}")
            self._console.print(line, no_wrap=True, overflow="ellipsis")

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        """Yield the display for the width that the terminal has now."""
        from rich.console import Group
        from rich.constrain import Constrain
        from rich.text import Text

        bars = [_bar(self._update, self._max_updates, f"update {self._update}/{self._max_updates}")]
        if (part := self._validating) is not None:
            text = f"validating: {part.done:,}/{part.total:,} {part.counted}"
            bars.append(_bar(part.done, part.total, text))
        lines = _rows(self._training) if self._training else []
        for name, record in (("validation", self._validation), ("best", self._best)):
            if record:
                lines += [f"{name} at update {record.update}: {row}" for row in _rows(record)]
        width = max(1, options.max_width - MARGIN)
        yield Constrain(Group(*bars, *map(Text, lines)), width)


def _bar(done: int, total: int, text: str) -> "RenderableType":
    """Return a bar with a text on its right."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    row = Table.grid(padding=(0, 2))
    row.add_row(ProgressBar(total, done, BAR_WIDTH), text)
    return row


def _redraw(done: int, total: int) -> bool:
    """Return whether a count has reached another of `REDRAWS` parts of its total."""
    return done * REDRAWS // max(total, 1) > (done - 1) * REDRAWS // max(total, 1)


def _rows(record: Record) -> list[str]:
    """Write a record for the live display."""
    rows: dict[int, list[str]] = {}
    for display, value in displays(record):
        rows.setdefault(display.row, []).append(display.terminal(value))
    return ["  ".join(filter(None, texts)) for _, texts in sorted(rows.items())]
