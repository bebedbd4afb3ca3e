"""The display of a run as plain lines, where there is no terminal."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from nmtkit.progress.records import TrainingRecord, ValidationRecord, displays


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

    def glance(self, record: Callable[[], TrainingRecord]) -> None:
        """Write nothing; there would be too many lines."""

    def validation(self, record: ValidationRecord) -> None:
        """Write a line of validation."""
        self._best_update = record.update if record.is_best else self._best_update
        self._write(record, f"best_update={self._best_update}")

    def message(self, text: str) -> None:
        """Write a line; training continues when the stream is closed."""
        with suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is written already."""

    def _write(self, record: TrainingRecord | ValidationRecord, *more: str) -> None:
        place = f"event={record.event} update={record.update}/{self._max_updates}"
        texts = [display.plain(value) for display, value in displays(record)]
        self.message(" ".join(filter(None, [place, *texts, *more])))
