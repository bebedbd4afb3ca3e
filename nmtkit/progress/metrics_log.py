"""`metrics.jsonl`: the records of a run, written line by line and read back.

A resumed run depends on its earlier validations. Their records are therefore synced, and one that
could not be written is written with the next record.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from nmtkit.errors import DamagedError
from nmtkit.progress.records import Record, SessionRecord, ValidationRecord
from nmtkit.storage.disk import check_is_file, disk_errors, read_file
from nmtkit.storage.durable import open_log, replace_file
from nmtkit.storage.json_data import JsonError, decode, decode_text, encode


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
        if not os.path.lexists(self.path):
            return
        open_log(self.path).close()
        with disk_errors(self.path):
            *lines, rest = read_file(self.path).split(b"\n")
        kept: list[bytes] = []
        session: list[bytes] = []  # until a record of it is kept
        for number, line in enumerate(lines, 1):
            record = self._record(line, number)
            if isinstance(record, SessionRecord):
                session = [line]
            elif record.update <= update:
                kept += [*session, line]
                session = []
        if rest or len(kept) < len(lines):
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

    def _record(self, line: bytes, number: int) -> Record:
        try:
            return _record(line)
        except JsonError as error:
            raise DamagedError(
                f"{self.path}:{number}: not a record of training: {error}; delete the line"
            ) from None


def _line(record: Record) -> bytes:
    return json.dumps({"event": record.event, **encode(record)}).encode() + b"\n"


def _record(line: bytes) -> Record:
    """Return the record of a line; JsonError if it is none."""
    values = decode_text(dict[str, Any], line)
    event = values.pop("event", None)
    for kind in get_args(Record):
        if event == kind.event:
            record: Record = decode(kind, values, null_is_inf=True)
            return record
    raise JsonError("missing or unknown", "event")
