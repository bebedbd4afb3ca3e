"""`metrics.jsonl`: the records of a run, written line by line and read back.

A resumed run depends on its earlier validations. Their records are therefore synced, and one that
could not be written is written with the next record. Records of earlier versions are read under
current names.
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
from nmtkit.progress.records import (
    Record,
    Sample,
    SessionRecord,
    SkippedRecord,
    TrainingRecord,
    ValidationRecord,
)
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import open_log, replace_file
from nmtkit.storage.reading import check_is_file, read_file

_KINDS: dict[str, type[Record]] = {
    kind.event: kind for kind in (TrainingRecord, ValidationRecord, SkippedRecord, SessionRecord)
}
_NUMBER = (int, float)


class MetricsLog:
    """A file of records, one JSON object per line; a number that is not finite is null."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unwritten = b""

    def begin(self, session: SessionRecord) -> None:
        """Add a session with the next record, so that one without records leaves no trace."""
        self._unwritten = _line(session)

    def append(self, record: Record) -> None:
        """Add a record, after a session and the validations that are not written yet.

        Raises:
            ResourceError: it cannot be written; the next call writes a validation again.
        """
        data = self._unwritten + _line(record)
        if isinstance(record, ValidationRecord):
            self._unwritten = data
        self._write(data)
        self._unwritten = b""

    def _write(self, data: bytes) -> None:
        """Write all of the data or nothing; sync it if it has validations."""
        with disk_errors(self.path), open_log(self.path) as stream:
            size = stream.tell()
            try:
                while data:  # a disk that becomes full writes a part first, then fails
                    data = data[stream.write(data) :]
                if self._unwritten:
                    os.fsync(stream.fileno())
            except OSError:
                stream.truncate(size)
                raise

    def drop_after(self, update: int) -> None:
        """Delete the records of updates after `update`, and an incomplete last line.

        A session that loses all its records is deleted too.

        Raises:
            DamagedError: another line is not a record.
            ResourceError: no records can be appended to the log.
        """
        if os.path.lexists(self.path):
            open_log(self.path).close()
        lines, is_last_incomplete = self._lines()
        kept: list[bytes] = []
        session: list[bytes] = []  # until a record of it is kept
        for number, line in enumerate(lines, 1):
            record = self._record(line, number)
            if isinstance(record, SessionRecord):
                session = [line]
            elif record.update <= update:
                kept += [*session, line]
                session = []
        if is_last_incomplete or len(kept) < len(lines):
            replace_file(self.path, b"".join(line + b"\n" for line in kept))

    def records(self) -> Iterator[Record]:
        """Yield the records in order, without an incomplete last line.

        Values that were not finite when written are infinite.

        Raises:
            DamagedError: a line is not a record.
        """
        if not self.path.exists():
            return
        check_is_file(self.path)
        with disk_errors(self.path), self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n"):
                    yield self._record(line, number)

    def validations(self) -> list[ValidationRecord]:
        """Return the records of validations in order; DamagedError as in `records`."""
        return [record for record in self.records() if isinstance(record, ValidationRecord)]

    def _lines(self) -> tuple[list[bytes], bool]:
        """Return the complete lines, and whether an incomplete line follows."""
        if not self.path.exists():
            return [], False
        with disk_errors(self.path):
            *lines, rest = read_file(self.path).split(b"\n")
        return lines, bool(rest)

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


def _line(record: Record) -> bytes:
    values = {"event": record.event, **dataclasses.asdict(record)}
    text = json.dumps({name: json_value(value) for name, value in values.items()})
    return text.encode() + b"\n"


def _record(values: Mapping[str, Any]) -> Record:
    """Return the record of a line's values; KeyError, TypeError or ValueError if there is none."""
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
    """Return the values of a validation; scores that were not finite are infinite."""
    if "loss" in values:
        values = _upgraded(values)
    scores = {
        name: math.inf if score is None else score for name, score in dict(values["scores"]).items()
    }
    if not all(isinstance(score, _NUMBER) for score in scores.values()):
        raise TypeError(scores)
    samples = [_sample(one) for one in values.get("samples", [])]
    return {**values, "scores": scores, "samples": samples}


def _sample(values: Mapping[str, Any]) -> Sample:
    """Return a sample of a validation; KeyError or TypeError if there is none."""
    sample = Sample(values["line"], values["source"], values["reference"], values["hypothesis"])
    texts = (sample.source, sample.reference, sample.hypothesis)
    if not (isinstance(sample.line, int) and all(isinstance(text, str) for text in texts)):
        raise TypeError(sample)
    return sample


def _upgraded(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of an old validation (`loss`, `bleu`, `signature`) under current names."""
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
    checked |= {list[int]: list, list[Sample]: list}
    checked |= {Mapping[str, float]: dict, Mapping[str, str]: dict}
    return {name: checked.get(type, type) for name, type in types.items()}


@cache
def _optional(event: str) -> frozenset[str]:
    """Return the names of the fields that old logs may lack."""
    fields = dataclasses.fields(_KINDS[event])
    return frozenset(
        one.name for one in fields if (one.default, one.default_factory) != (MISSING, MISSING)
    )


def json_value(value: Any) -> Any:
    """Return a value of a record as JSON can hold it: a number that is not finite is None."""
    if isinstance(value, dict):
        return {name: json_value(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
