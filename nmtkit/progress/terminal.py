"""The live display of a run on a terminal, drawn by rich."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from nmtkit.progress.records import Record, TrainingRecord, ValidationRecord, displays

if TYPE_CHECKING:
    from rich.console import Group

BAR_WIDTH = 40


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
        self._live.start()
        self._show()

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""
        self._update, self._training = record.update, record
        self._show()

    def refresh(self, record: Callable[[], TrainingRecord]) -> None:
        """Show progress between two reports."""
        self.update(record())

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation."""
        self._note(record)
        self._show()

    def message(self, text: str) -> None:
        """Print a line above the display."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._live.stop()

    def _note(self, record: ValidationRecord) -> None:
        self._validation = record
        self._best = record if record.is_best else self._best

    def _show(self) -> None:
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
