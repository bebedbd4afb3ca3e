"""The display of a run on a stream: live on a terminal, plain lines elsewhere, or none."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TextIO

from nmtkit.progress.counting import MARGIN, can_draw
from nmtkit.progress.records import (
    Record,
    Sample,
    TrainingRecord,
    ValidationProgress,
    ValidationRecord,
    displays,
)
from nmtkit.units import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

BAR_WIDTH = 40

REDRAWS = 100
"""Largest number of redraws for the progress of a part of a validation."""


class ProgressReporter:
    """Displays a run; this one displays nothing, as only the first rank reports."""

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


LONGEST_SILENCE = timedelta(seconds=30)
"""Longest time without a line while a run computes."""


class PlainReporter(ProgressReporter):
    """One line of key=value per event, after its local time; work that takes long has more."""

    def __init__(self, stream: TextIO, now: Callable[[], datetime] = datetime.now) -> None:
        self._stream = stream
        self._now = now
        self._max_updates = 0
        self._best_update = 0
        self._has_progress = False
        self._last_line: datetime | None = None
        self._validated_update = 0

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
        """Write a line of progress early, and after `LONGEST_SILENCE`."""
        if not self._has_progress or self._is_silent():
            self.update(record())

    def validating(self, update: int, num_lines: int) -> None:
        """Write that a validation begins."""
        self._validated_update = update
        self._write("validating", update, f"lines={num_lines}")

    def validation_progress(self, progress: ValidationProgress) -> None:
        """Write how far the validation is after `LONGEST_SILENCE`."""
        if self._is_silent():
            unit = progress.counted.replace(" ", "_")
            done = f"{unit}={progress.done}/{progress.total}"
            self._write("validating", self._validated_update, done)

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
        line = printable(text.replace("\n", " "))
        self._last_line = self._now()
        self._stream.write(f"{self._last_line:%Y-%m-%d %H:%M:%S} {line}\n")
        self._stream.flush()

    def _is_silent(self) -> bool:
        last = self._last_line
        return last is not None and self._now() - last >= LONGEST_SILENCE

    def _write(self, event: str, update: int, *values: str) -> None:
        place = f"event={event} update={update}/{self._max_updates}"
        self.message(" ".join([place, *values]))


def _values(record: TrainingRecord | ValidationRecord) -> list[str]:
    """Return the displayed values of a record as key=value."""
    return list(filter(None, (display.plain(value) for display, value in displays(record))))


class TerminalReporter(ProgressReporter):
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
        """Print a text above the display, wrapped between words."""
        line = printable(text.replace("\n", " "))
        self._console.print(line, markup=False, highlight=False)

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
