"""Records of training, and `metrics.jsonl`, which holds every one of them.

What validation has seen is read back from there when a run goes on, so its records are kept safe:
they are synced, and one that could not be written is written with the next.
"""

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from nmtkit.durable import disk_errors, replace_file
from nmtkit.errors import DamagedError

TRAINING, VALIDATION, SKIPPED = "training", "validation", "skipped"
"""The events that a record can be of."""


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The updates since the record before, as far as they are of the same session.

    Attributes:
        update: the last of them.
        epoch: the pass over the corpus that it belongs to, from 1.
        loss: training objective, which is label-smoothed, in nats per target token.
        nll: negative log-likelihood without smoothing, in nats per target token; perplexity is
            its exp.
        learning_rate, gradient_norm: of the last update.
        tokens_per_second: source and target tokens, end symbols counted.
        num_source_tokens, num_target_tokens: how many there were.
        skipped_updates: updates of the run so far whose gradients were not finite.
        eta_s: seconds until max_updates, max_epochs or max_minutes, whichever is first; that a run
            will end for want of progress is not foreseen.
        elapsed_s: seconds of training, all sessions of the run together.
        fill: tokens as a share of the largest updates that there could be.
        peak_memory: bytes that the device, or on a CPU the process, has needed at most; 0 where
            nothing was told.
        ranks: processes that trained together, a device each.
        operations: floating-point operations of these updates, counted from the model's shape;
            None where nothing was told.
        paper_operations: the same as the paper counts: time since the record before x devices x
            what one is taken to sustain; None for a device of which there is no figure.
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
    fill: float = math.inf
    peak_memory: int = 0
    ranks: int = 1
    operations: float | None = None
    paper_operations: float | None = None


@dataclass(frozen=True, kw_only=True)
class ValidationRecord:
    """One look at the validation set.

    Attributes:
        update: the update after which it was.
        nll: negative log-likelihood without smoothing, in nats per target token; perplexity is
            its exp.
        bleu, signature: if it was translated as well.
        is_best: no validation before was as good, by the metric that decides.
        took_s: seconds that it took.
    """

    update: int
    nll: float
    perplexity: float
    bleu: float | None
    signature: str | None
    is_best: bool
    took_s: float


@dataclass(frozen=True, kw_only=True)
class SkippedRecord:
    """An update that changed nothing, as its gradients were not finite.

    Attributes:
        update: which.
        shard, pairs: the shard of the training pairs that it was of, and which of them.
    """

    update: int
    shard: int
    pairs: list[int]


Record = TrainingRecord | ValidationRecord | SkippedRecord


class Log(Protocol):
    """Keeps records."""

    def append(self, record: Record) -> None:
        """Add a record; ResourceError if it cannot be written."""


_NUMBER = (int, float)
_ADDED = ("fill", "peak_memory", "ranks", "operations", "paper_operations")
"""What the first logs do not tell."""
_KINDS: dict[str, type[Record]] = {
    TRAINING: TrainingRecord,
    VALIDATION: ValidationRecord,
    SKIPPED: SkippedRecord,
}
_EVENTS = {kind: event for event, kind in _KINDS.items()}


class MetricsLog:
    """A file of records, one JSON object a line; what is not finite is null."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unwritten = b""

    def append(self, record: Record) -> None:
        """Add a record, after those that could not be written before.

        Raises:
            ResourceError: it cannot be written; of a validation, which must not be lost, the next
                call tries again.
        """
        event = _EVENTS[type(record)]
        values = {"event": event, **dataclasses.asdict(record)}
        line = json.dumps({name: _json_value(value) for name, value in values.items()})
        data = self._unwritten + line.encode() + b"\n"
        if event == VALIDATION:
            self._unwritten = data
        self._write(data)
        self._unwritten = b""

    def _write(self, data: bytes) -> None:
        """Write all of the data, or else nothing of it; sync it if it holds validations."""
        with disk_errors(self.path), self.path.open("ab", buffering=0) as stream:
            size = stream.tell()
            try:
                while data:  # a disk that fills up takes a part first, and refuses the rest
                    data = data[stream.write(data) :]
                if self._unwritten:
                    os.fsync(stream.fileno())
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
            line
            for number, line in enumerate(lines, 1)
            if self._record(line, number).update <= update
        ]
        if is_torn or len(kept) < len(lines):
            replace_file(self.path, b"".join(line + b"\n" for line in kept))

    def records(self) -> Iterator[Record]:
        """Yield the records in their order, what was not finite as infinite; not a torn last line.

        Raises:
            DamagedError: a line is no record.
        """
        if not self.path.is_file():
            return
        with disk_errors(self.path), self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n"):
                    yield self._record(line, number)

    def validations(self) -> list[ValidationRecord]:
        """Return the records of validations, in their order; DamagedError as `records`."""
        return [record for record in self.records() if isinstance(record, ValidationRecord)]

    def _lines(self) -> tuple[list[bytes], bool]:
        """Return the lines that are complete, and whether another one follows that is not."""
        if not self.path.exists():
            return [], False
        with disk_errors(self.path):
            *lines, torn = self.path.read_bytes().split(b"\n")
        return lines, bool(torn)

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or not isinstance(values.get("update"), int):
            raise self._damaged(number)
        return values

    def _record(self, line: bytes, number: int) -> Record:
        values = self._parse(line, number)
        try:
            return _record(values)
        except (KeyError, TypeError):
            raise self._damaged(number) from None

    def _damaged(self, number: int) -> DamagedError:
        return DamagedError(f"{self.path}:{number}: not a record of training; delete the line")


def _record(values: Mapping[str, Any]) -> Record:
    """Rebuild a record from the values of its line; KeyError or TypeError where they are none."""
    event = values["event"]
    kind = _KINDS[event]
    values = _upgraded(event, values)
    types = _types(event)
    found = {name: values[name] for name in types if name in values or name not in _ADDED}
    if None in found.values():
        lost = [name for name, value in found.items() if value is None and types[name] is _NUMBER]
        found.update(dict.fromkeys(lost, math.inf))
    if not all(isinstance(value, types[name]) for name, value in found.items()):
        raise TypeError(found)
    return kind(**found)


def _upgraded(event: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return today's values of a record that an earlier version wrote."""
    if event == VALIDATION and "loss" in values:
        return {"nll": values["loss"], **values}
    return values


@cache
def _types(event: str) -> dict[str, Any]:
    """Return of what types the values of a record may be, by name."""
    types = {field.name: field.type for field in dataclasses.fields(_KINDS[event])}
    checked: dict[Any, Any] = {float: _NUMBER, list[int]: list}
    return {name: checked.get(type, type) for name, type in types.items()}


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
