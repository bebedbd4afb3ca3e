"""What training tells while it runs: records, their log, and how they are shown.

`metrics.jsonl` holds every record; on a terminal a display follows them, elsewhere plain lines.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from nmtkit.durable import disk_errors, replace_file
from nmtkit.errors import DamagedError

if TYPE_CHECKING:
    from rich.console import Group

BAR_WIDTH = 40


TRAINING, VALIDATION = "training", "validation"
"""The events that a record can be of."""


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The updates since the record before, as far as they are of the same session.

    Attributes:
        update: the last of them.
        epoch: the pass over the corpus that it belongs to, from 1.
        loss: label-smoothed loss, nats a target token.
        nll: negative log-likelihood, nats a target token; perplexity is its exp.
        learning_rate, gradient_norm: of the last update.
        tokens_per_second: source and target tokens, end symbols counted.
        num_source_tokens, num_target_tokens: how many there were.
        skipped_updates: updates of the run so far whose gradients were not finite.
        eta_s: seconds until the last update of the run.
        elapsed_s: seconds of training, all sessions of the run together.
    """

    update: int
    epoch: int
    loss: float
    nll: float
    perplexity: float
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    updates_per_second: float
    num_source_tokens: int
    num_target_tokens: int
    skipped_updates: int
    eta_s: float
    elapsed_s: float


@dataclass(frozen=True, kw_only=True)
class ValidationRecord:
    """One look at the validation set.

    Attributes:
        update: the update after which it was.
        loss: negative log-likelihood, nats a target token; perplexity is its exp.
        bleu, signature: if it was translated as well.
        is_best: no validation before was as good, by the metric that decides.
        took_s: seconds that it took.
    """

    update: int
    loss: float
    perplexity: float
    bleu: float | None
    signature: str | None
    is_best: bool
    took_s: float


class MetricsLog:
    """A file of records, one JSON object a line; what is not finite is null."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: TrainingRecord | ValidationRecord) -> None:
        """Add a record; ResourceError if it cannot be written, and then nothing of it is."""
        event = TRAINING if isinstance(record, TrainingRecord) else VALIDATION
        values = {"event": event, **dataclasses.asdict(record)}
        line = json.dumps({name: _json_value(value) for name, value in values.items()})
        with disk_errors(self.path), self.path.open("ab", buffering=0) as stream:
            size = stream.tell()
            try:
                stream.write(line.encode() + b"\n")
            except OSError:
                stream.truncate(size)
                raise

    def cut(self, update: int) -> None:
        """Drop the records of later updates, which are done again, and a torn last line.

        Raises:
            DamagedError: a line in the middle is no record.
        """
        lines, is_torn = self._lines()
        kept = [
            line for number, line in enumerate(lines, 1) if self._update(line, number) <= update
        ]
        if is_torn or len(kept) < len(lines):
            replace_file(self.path, b"".join(line + b"\n" for line in kept))

    def validations(self) -> list[ValidationRecord]:
        """Return the records of validations, in their order.

        Raises:
            DamagedError: a line is no record.
        """
        lines, _ = self._lines()
        found = [self._parse(line, number) for number, line in enumerate(lines, 1)]
        return [_validation(values) for values in found if values["event"] == VALIDATION]

    def _lines(self) -> tuple[list[bytes], bool]:
        """Return the lines that are complete, and whether another one follows that is not."""
        if not self.path.exists():
            return [], False
        with disk_errors(self.path):
            *lines, torn = self.path.read_bytes().split(b"\n")
        return lines, bool(torn)

    def _update(self, line: bytes, number: int) -> int:
        update: int = self._parse(line, number)["update"]
        return update

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            values = json.loads(line)
        except ValueError:
            values = None
        if not isinstance(values, dict) or not isinstance(values.get("update"), int):
            raise DamagedError(f"{self.path}:{number}: not a record of training; delete the line")
        return values


class ProgressReporter(Protocol):
    """Shows a run to whoever watches."""

    def start(self, max_updates: int, update: int) -> None:
        """Begin: so many updates there will be, and so many are done."""

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""

    def glance(self, record: TrainingRecord) -> None:
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

    def start(self, max_updates: int, update: int) -> None:
        """Say where the run begins."""
        self._max_updates = max_updates
        self.message(f"event=start update={update}/{max_updates}")

    def update(self, record: TrainingRecord) -> None:
        """Write a line of progress."""
        self.message(
            f"event=training update={record.update}/{self._max_updates} epoch={record.epoch} "
            f"loss_per_token={record.loss:.4f} perplexity={record.perplexity:.2f} "
            f"lr={record.learning_rate:.3e} gradient_norm={record.gradient_norm:.3f} "
            f"source+target_tokens_per_s={record.tokens_per_second:.0f} "
            f"updates_per_s={record.updates_per_second:.2f} "
            f"skipped_updates={record.skipped_updates} "
            f"eta={duration(record.eta_s)} elapsed={duration(record.elapsed_s)}"
        )

    def glance(self, record: TrainingRecord) -> None:
        """Write nothing: there would be too many lines."""

    def validation(self, record: ValidationRecord) -> None:
        """Write a line of validation."""
        bleu = "" if record.bleu is None else f" bleu={record.bleu:.2f}"
        self.message(
            f"event=validation update={record.update}/{self._max_updates} "
            f"loss_per_token={record.loss:.4f} perplexity={record.perplexity:.2f}{bleu} "
            f"best={'yes' if record.is_best else 'no'} took={duration(record.took_s)}"
        )

    def message(self, text: str) -> None:
        """Write a line; training goes on when nobody can read it any more."""
        with suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is written already."""


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

    def start(self, max_updates: int, update: int) -> None:
        """Open the display."""
        self._max_updates, self._update = max_updates, update
        self._live.start()
        self._show()

    def update(self, record: TrainingRecord) -> None:
        """Show progress."""
        self._update, self._training = record.update, record
        self._show()

    def glance(self, record: TrainingRecord) -> None:
        """Show progress between two reports."""
        self.update(record)

    def validation(self, record: ValidationRecord) -> None:
        """Show a validation."""
        self._validation = record
        self._best = record if record.is_best else self._best
        self._show()

    def message(self, text: str) -> None:
        """Print a line above the display."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._live.stop()

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


def _training_lines(record: TrainingRecord) -> list[str]:
    skipped = f"  {record.skipped_updates} updates skipped" if record.skipped_updates else ""
    return [
        f"epoch {record.epoch}  loss {record.loss:.4f} nats/token  "
        f"perplexity {record.perplexity:.2f}/token  lr {record.learning_rate:.3e}  "
        f"gradient norm {record.gradient_norm:.3f}{skipped}",
        f"{record.tokens_per_second:,.0f} source+target tokens/s  "
        f"{record.updates_per_second:.2f} updates/s  "
        f"elapsed {duration(record.elapsed_s)}  ETA {duration(record.eta_s)}",
    ]


def _validation_line(name: str, record: ValidationRecord) -> str:
    bleu = "" if record.bleu is None else f"  BLEU {record.bleu:.2f}"
    return (
        f"{name} at update {record.update}: loss {record.loss:.4f} nats/token  "
        f"perplexity {record.perplexity:.2f}/token{bleu}"
    )


def _validation(values: Mapping[str, Any]) -> ValidationRecord:
    """Rebuild a record from its line; a loss that was not finite is infinite."""
    fields = {name: value for name, value in values.items() if name != "event"}
    loss = math.inf if fields["loss"] is None else fields["loss"]
    return ValidationRecord(**{**fields, "loss": loss})


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
