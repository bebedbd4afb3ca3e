"""Records of training, how they are displayed, and `metrics.jsonl`, which holds all of them.

Each field of a record is declared once, with its display. Validations decide how a resumed run
continues. So they are synced, and one that could not be written is written with the next record.
"""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from nmtkit.errors import DamagedError
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import replace_file
from nmtkit.units import duration, mebibytes

TRAINING, VALIDATION, SKIPPED = "training", "validation", "skipped"
"""The events of records."""

Template = str | Callable[[Any], str]
"""A format string for a value, or a function that writes it; an empty text is left out."""


@dataclass(frozen=True)
class Display:
    """How the value of a field is displayed.

    Attributes:
        plain: writes key=value for a plain line.
        terminal: writes text for the live display.
        row: row of the live display, from 1.
    """

    plain: Callable[[Any], str]
    terminal: Callable[[Any], str]
    row: int


def shown(plain: Template, terminal: Template, *, row: int = 1, default: Any = MISSING) -> Any:
    """Declare a field of a record with its display.

    Args:
        plain, terminal, row: see `Display`.
        default: value of a field that old logs may lack.
    """
    return dataclasses.field(
        default=default, metadata={"display": Display(_writer(plain), _writer(terminal), row)}
    )


def _writer(template: Template) -> Callable[[Any], str]:
    return template.format if isinstance(template, str) else template


def plain_scores(scores: Mapping[str, float]) -> str:
    """Write scores for a plain line."""
    return " ".join(f"{name}={score:.2f}" for name, score in scores.items())


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The updates since the previous record of the same session.

    Attributes:
        update: the last of them.
        epoch: the pass over the corpus, from 1.
        loss: training objective, which is label-smoothed, in nats per target token.
        nll: negative log-likelihood without smoothing, in nats per target token; perplexity is
            its exp.
        learning_rate, gradient_norm: of the last update.
        tokens_per_second: source and target tokens, end symbols counted.
        num_source_tokens, num_target_tokens: tokens of the updates.
        fill: used share of the token budget.
        peak_memory: largest number of bytes in use on the device, or by the process on a CPU; 0 if
            unknown.
        skipped_updates: updates of the run so far whose gradients were not finite.
        eta_s: seconds until max_updates, max_epochs or max_minutes, whichever is first; early
            stopping is not foreseen.
        elapsed_s: seconds of training in all sessions of the run.
        ranks: processes that trained together, one per device.
        operations: floating-point operations of these updates, counted from the model's shape;
            None if unknown.
        paper_operations: the paper's count: time since the previous record x devices x sustained
            rate of a device; None for a device without a known rate.
    """

    update: int
    epoch: int = shown("epoch={}", "epoch {}")
    loss: float = shown("loss={:.4f}", "loss {:.4f}")
    nll: float = shown("nll={:.4f}", "nll {:.4f} nats/token")
    perplexity: float = shown("perplexity={:.2f}", "perplexity {:.2f}")
    learning_rate: float = shown("lr={:.3e}", "lr {:.3e}")
    gradient_norm: float = shown("gradient_norm={:.3f}", "gradient norm {:.3f}")
    tokens_per_second: float = shown(
        "source+target_tokens_per_s={:.0f}", "{:,.0f} source+target tokens/s", row=2
    )
    updates_per_second: float = shown("updates_per_s={:.2f}", "{:.2f} updates/s", row=2)
    num_source_tokens: int
    num_target_tokens: int
    fill: float = shown("fill={:.2f}", "fill {:.0%}", row=2, default=math.inf)
    peak_memory: int = shown(
        lambda size: f"memory={mebibytes(size)}",
        lambda size: f"memory {mebibytes(size)}",
        row=2,
        default=0,
    )
    skipped_updates: int = shown(
        "skipped_updates={}", lambda count: f"{count} updates skipped" if count else ""
    )
    eta_s: float = shown(
        lambda seconds: f"eta={duration(seconds)}",
        lambda seconds: f"ETA {duration(seconds)}",
        row=2,
    )
    elapsed_s: float = shown(
        lambda seconds: f"elapsed={duration(seconds)}",
        lambda seconds: f"elapsed {duration(seconds)}",
        row=2,
    )
    ranks: int = 1
    operations: float | None = None
    paper_operations: float | None = None


@dataclass(frozen=True, kw_only=True)
class ValidationRecord:
    """One validation.

    Attributes:
        update: the number of updates before it.
        nll: negative log-likelihood without smoothing, in nats per target token; perplexity is
            its exp.
        scores: of the translated validation set, by metric.
        signatures: how the scores were computed, by metric; none for a model that cannot translate.
        is_best: it is better than all before, by the run's best metric.
        took_s: seconds that it took.
    """

    update: int
    nll: float = shown("nll={:.4f}", "nll {:.4f} nats/token")
    perplexity: float = shown("perplexity={:.2f}", "perplexity {:.2f}")
    scores: Mapping[str, float] = shown(
        plain_scores,
        lambda scores: "  ".join(f"{name} {score:.2f}" for name, score in scores.items()),
    )
    signatures: Mapping[str, str]
    is_best: bool
    took_s: float = shown(
        lambda seconds: f"took={duration(seconds)}", lambda seconds: f"took {duration(seconds)}"
    )


@dataclass(frozen=True, kw_only=True)
class SkippedRecord:
    """An update that was skipped because its gradients were not finite.

    Attributes:
        update: its number.
        shard, pairs: the training shard of its pairs, and their numbers in it.
    """

    update: int
    shard: int
    pairs: list[int]


Record = TrainingRecord | ValidationRecord | SkippedRecord


class Log(Protocol):
    """A logger: takes every record of the first rank; `run.py` makes those that are asked for."""

    def append(self, record: Record) -> None:
        """Add a record; ResourceError if it cannot be written."""


_NUMBER = (int, float)
_KINDS: dict[str, type[Record]] = {
    TRAINING: TrainingRecord,
    VALIDATION: ValidationRecord,
    SKIPPED: SkippedRecord,
}
_EVENTS = {kind: event for event, kind in _KINDS.items()}


def displays(record: Record) -> list[tuple[Display, Any]]:
    """Return the displayed fields of a record with their values, in the order of declaration."""
    return [
        (field.metadata["display"], vars(record)[field.name])
        for field in dataclasses.fields(record)
        if "display" in field.metadata
    ]


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
        except (KeyError, TypeError, ValueError):
            raise self._damaged(number) from None

    def _damaged(self, number: int) -> DamagedError:
        return DamagedError(f"{self.path}:{number}: not a record of training; delete the line")


def _record(values: Mapping[str, Any]) -> Record:
    """Rebuild a record from the values of its line; KeyError, TypeError or ValueError if unfit."""
    event = values["event"]
    kind = _KINDS[event]
    types = _types(event)
    if event == VALIDATION:
        values = _validation(values)
    found = {name: values[name] for name in types if name in values or name not in _optional(event)}
    if None in found.values():
        lost = [name for name, value in found.items() if value is None and types[name] is _NUMBER]
        found.update(dict.fromkeys(lost, math.inf))
    if not all(isinstance(value, types[name]) for name, value in found.items()):
        raise TypeError(found)
    return kind(**found)


def _validation(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a validation, with scores that were not finite as infinite."""
    if "loss" in values:
        values = _upgraded(values)
    scores = {
        name: math.inf if score is None else score for name, score in dict(values["scores"]).items()
    }
    if not all(isinstance(score, _NUMBER) for score in scores.values()):
        raise TypeError(scores)
    return {**values, "scores": scores}


def _upgraded(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return today's values of a validation that had `loss`, `bleu` and `signature`."""
    bleu, signature = values["bleu"], values["signature"]
    return {
        **values,
        "nll": values["loss"],
        "scores": {} if bleu is None else {"bleu": bleu},
        "signatures": {} if signature is None else {"bleu": signature},
    }


@cache
def _types(event: str) -> dict[str, Any]:
    """Return the permitted types of the values of a record, by name."""
    types = {field.name: field.type for field in dataclasses.fields(_KINDS[event])}
    checked: dict[Any, Any] = {float: _NUMBER}
    checked |= {list[int]: list, Mapping[str, float]: dict, Mapping[str, str]: dict}
    return {name: checked.get(type, type) for name, type in types.items()}


@cache
def _optional(event: str) -> frozenset[str]:
    """Return the names of the fields that old logs may lack."""
    fields = dataclasses.fields(_KINDS[event])
    return frozenset(one.name for one in fields if one.default is not MISSING)


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json_value(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
