"""How training is shown while it runs: a live display on a terminal, plain lines elsewhere."""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TextIO

from nmtkit.records import TrainingRecord, ValidationRecord

if TYPE_CHECKING:
    from rich.console import Group

BAR_WIDTH = 40


class ProgressReporter(Protocol):
    """Shows a run to whoever watches."""

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Begin: so many updates there will be, so many are done, and these were validated."""

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Show, between two updates of the display, how far training is; lines need no such."""

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
    """One line of key=value an event."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._max_updates = 0
        self._best_update = 0

    def start(self, max_updates: int, update: int, validations: Sequence[ValidationRecord]) -> None:
        """Say where the run begins."""
        self._max_updates = max_updates
        self._best_update = next((v.update for v in reversed(validations) if v.is_best), 0)
        self.message(f"event=start update={update}/{max_updates}")

    def update(self, record: TrainingRecord) -> None:
        """Write a line of progress."""
        self.message(
            f"event=training update={record.update}/{self._max_updates} epoch={record.epoch} "
            f"loss={record.loss:.4f} nll={record.nll:.4f} perplexity={record.perplexity:.2f} "
            f"lr={record.learning_rate:.3e} gradient_norm={record.gradient_norm:.3f} "
            f"source+target_tokens_per_s={record.tokens_per_second:.0f} "
            f"updates_per_s={record.updates_per_second:.2f} "
            f"fill={record.fill:.2f} memory={mebibytes(record.peak_memory)} "
            f"skipped_updates={record.skipped_updates} "
            f"eta={duration(record.eta_s)} elapsed={duration(record.elapsed_s)}"
        )

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Write nothing: there would be too many lines."""

    def validation(self, record: ValidationRecord) -> None:
        """Write a line of validation."""
        bleu = "" if record.bleu is None else f" bleu={record.bleu:.2f}"
        self._best_update = record.update if record.is_best else self._best_update
        self.message(
            f"event=validation update={record.update}/{self._max_updates} "
            f"nll={record.nll:.4f} perplexity={record.perplexity:.2f}{bleu} "
            f"best_update={self._best_update} took={duration(record.took_s)}"
        )

    def message(self, text: str) -> None:
        """Write a line; training goes on when nobody can read it any more."""
        with suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is written already."""


class SilentReporter:
    """Shows nothing: of several ranks, one talks."""

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
    """A display of a few lines that stays below what is printed meanwhile."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream)
        # Refreshed by records alone: a thread would take its share of the CPU that trains.
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
        """Print a line above the display; training goes on when the terminal is gone."""
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
        lines = _training_lines(self._training) if self._training else []
        if self._validation:
            lines.append(_validation_line("validation", self._validation))
        if self._best:
            lines.append(_validation_line("best", self._best))
        return Group(done, *map(Text, lines))


def duration(seconds: float) -> str:
    """Write a time span as hours, minutes and seconds, the larger two of them."""
    if not math.isfinite(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def mebibytes(size: int) -> str:
    """Write a number of bytes as MiB, without a space."""
    return f"{size / 2**20:.0f}MiB"


def prefixed(number: float) -> str:
    """Write a number with three digits and the prefix of its unit, which is to follow."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if number < 1000:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} E"


def _training_lines(record: TrainingRecord) -> list[str]:
    skipped = f"  {record.skipped_updates} updates skipped" if record.skipped_updates else ""
    return [
        f"epoch {record.epoch}  loss {record.loss:.4f}  nll {record.nll:.4f} nats/token  "
        f"perplexity {record.perplexity:.2f}  lr {record.learning_rate:.3e}  "
        f"gradient norm {record.gradient_norm:.3f}{skipped}",
        f"{record.tokens_per_second:,.0f} source+target tokens/s  "
        f"{record.updates_per_second:.2f} updates/s  fill {record.fill:.0%}  "
        f"memory {mebibytes(record.peak_memory)}  "
        f"elapsed {duration(record.elapsed_s)}  ETA {duration(record.eta_s)}",
    ]


def _validation_line(name: str, record: ValidationRecord) -> str:
    bleu = "" if record.bleu is None else f"  BLEU {record.bleu:.2f}"
    return (
        f"{name} at update {record.update}: nll {record.nll:.4f} nats/token  "
        f"perplexity {record.perplexity:.2f}{bleu}"
    )
