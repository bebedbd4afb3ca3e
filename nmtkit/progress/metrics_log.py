"""`metrics.jsonl`: the file of all records of a run, written line by line and read back.

Validations decide how a resumed run continues. So they are synced, and one that could not be
written is written with the next record. Records of earlier versions are read with today's names.
"""

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from functools import cache
from pathlib import Path
from typing import Any

from nmtkit.errors import DamagedError
from nmtkit.progress.records import Record, SkippedRecord, TrainingRecord, ValidationRecord
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import replace_file

_KINDS: dict[str, type[Record]] = {
    kind.event: kind for kind in (TrainingRecord, ValidationRecord, SkippedRecord)
}
_NUMBER = (int, float)


class MetricsLog:
    """A file of records, one JSON object per line; a number that is not finite is null."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unwritten = b""

    def append(self, record: Record) -> None:
        """Add a record, after those that could not be written before.

        Raises:
            ResourceError: it cannot be written; of a validation, which must not be lost, the next
                call tries again.
        """
        values = {"event": record.event, **dataclasses.asdict(record)}
        line = json.dumps({name: _json_value(value) for name, value in values.items()})
        data = self._unwritten + line.encode() + b"\n"
        if isinstance(record, ValidationRecord):
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
    kind, types = _KINDS[event], _types(event)
    if kind is ValidationRecord:
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
