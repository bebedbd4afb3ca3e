"""Lines and files without an end are refused when their limit is reached."""

import gzip
import io
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nmtkit.errors import DataError
from nmtkit.text import lines
from nmtkit.text.lines import (
    MAX_LINE_BYTES,
    TOO_LONG,
    decode_lines,
    read_list,
    read_pair,
    read_whole,
)
from tests.messages import refuses

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Endless(io.RawIOBase):
    """Bytes without a line feed and without an end."""

    def __init__(self) -> None:
        self.num_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        view[:] = bytes(len(view))
        self.num_read += len(view)
        return len(view)


def test_a_line_without_an_end_is_refused_at_the_limit() -> None:
    endless = Endless()
    with refuses(DataError, "x:1 1MiB; break"):
        next(decode_lines(io.BufferedReader(endless), "x"))
    assert endless.num_read < MAX_LINE_BYTES + 2**16


def test_a_line_that_is_skipped_has_a_limit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_SKIPPED_BYTES", 3 * MAX_LINE_BYTES)
    long, other = tmp_path / "long", tmp_path / "other"
    other.write_bytes(b"a\nb\n")
    long.write_bytes(b"x" * (4 * MAX_LINE_BYTES) + b"\nb\n")
    assert list(read_pair(long, other)) == [(TOO_LONG, "a"), ("b", "b")]
    long.write_bytes(b"x" * (6 * MAX_LINE_BYTES) + b"\nb\n")
    with refuses(DataError, f"{long}:1 3MiB; break"):
        list(read_pair(long, other))


def test_a_list_has_a_limit_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_FILE_BYTES", 10)
    path = tmp_path / "list"
    path.write_bytes("a\nb\n\u20ac\n\n\n".encode())
    assert list(read_list(path)) == ["a", "b", "\u20ac", "", ""]
    for data in (path.read_bytes() + b"\n", gzip.compress(path.read_bytes() + b"\n")):
        path.write_bytes(data)
        with refuses(DataError, f"{path}:6 0MiB; file"):
            list(read_list(path))


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**21])
def test_a_whole_file_is_read_up_to_its_limit(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    monkeypatch.setattr(lines, "MAX_FILE_BYTES", size)
    assert read_whole(path) == b"x" * size
    path.write_bytes(b"x" * (size + 1))
    with refuses(DataError, f"{path} {size // 2**20}MiB; file"):
        read_whole(path)


def test_a_whole_file_may_be_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = bytes(range(256)) * 2**10
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    writer.start()
    assert read_whole(tmp_path / "pipe") == data
    writer.join()
