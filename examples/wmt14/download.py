"""Downloads that resume after interruptions and retry after network errors."""

import http.client
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from examples.wmt14.errors import (
    NO_ROOM,
    TRY_AGAIN,
    USAGE,
    FetchError,
    disk_errors,
    megabytes,
    say,
)

CHUNK_BYTES = 2**20
TIMEOUT_S = 60
MAX_FAILURES = 8  # in a row without a received byte
FIRST_PAUSE_S = 1.0  # doubles with every failure: two minutes in all
PROGRESS_S, TERMINAL_PROGRESS_S = 30.0, 0.5
LINE_WIDTH = 72
# Client errors that may not occur again.
TEMPORARY = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
)


def download(address: str, path: Path, pause: Callable[[float], None]) -> None:
    """Download a file; resume from PATH.part, which holds an incomplete download.

    Args:
        address: http or https.
        path: the file to write.
        pause: waits for a number of seconds before a retry.

    Raises:
        FetchError: the server refuses, the network fails too often, or the disk is full.
    """
    part = path.with_name(f"{path.name}.part")
    failures = 0
    while True:
        size_before = size(part)
        try:
            transfer(address, part)
            break
        except (OSError, http.client.HTTPException) as error:
            failures = failures + 1 if size(part) <= size_before else 1
            if is_final(error):
                raise FetchError(USAGE, f"{address}: {error}; use a mirror that has it") from None
            if failures == MAX_FAILURES:
                raise FetchError(
                    TRY_AGAIN,
                    f"{address}: {error}; run the same command again to resume",
                ) from None
            say(f"{path.name}: {error}; retrying")
            pause(FIRST_PAUSE_S * 2 ** (failures - 1))
    with disk_errors(path):
        part.replace(path)


def transfer(address: str, part: Path) -> None:
    """Append the missing rest of a file to `part`; return when it is complete.

    Raises:
        OSError, HTTPException: the connection fails or ends early.
        FetchError: the disk is full or cannot be written to.
    """
    offset = size(part)
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(address, headers=headers), timeout=TIMEOUT_S
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{offset}":
            return
        part.unlink()  # longer than the file, so not a part of it
        raise
    with response:
        is_continued = response.status == HTTPStatus.PARTIAL_CONTENT
        offset = offset if is_continued else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else offset + int(length)
        check_room(part, (total or 0) - offset)
        progress = Progress(part.name.removesuffix(".part"), offset, total)
        with disk_errors(part), part.open("ab" if is_continued else "wb") as stream:
            while chunk := receive(response):
                stream.write(chunk)
                progress.advance(len(chunk))
        progress.finish()
    if total is not None and size(part) != total:
        raise http.client.HTTPException(f"ended after {size(part)} of {total} bytes")


def receive(response: http.client.HTTPResponse) -> bytes:
    """Return the next bytes; network errors become HTTPException, unlike disk errors."""
    try:
        return response.read(CHUNK_BYTES)
    except OSError as error:
        raise http.client.HTTPException(str(error)) from error


def is_final(error: Exception) -> bool:
    """Return whether a retry is useless, as for a file that the server does not have."""
    if not isinstance(error, urllib.error.HTTPError):
        return False
    return HTTPStatus.BAD_REQUEST <= error.code < HTTPStatus.INTERNAL_SERVER_ERROR and (
        error.code not in TEMPORARY
    )


def check_room(path: Path, num_bytes: int) -> None:
    """Raise FetchError unless the disk has room for a number of bytes."""
    free = shutil.disk_usage(path.parent).free
    if num_bytes > free:
        raise FetchError(
            NO_ROOM,
            f"{path}: needs {megabytes(num_bytes)}, but {megabytes(free)} are free; free some "
            "space there, or choose a folder on another disk",
        )


class Progress:
    """Progress of a download: one changing line on a terminal, else a line now and then."""

    def __init__(self, name: str, num_bytes: int, total: int | None) -> None:
        self._name = name
        self._num_bytes = num_bytes
        self._total = total
        self._first_bytes = num_bytes
        self._began = self._last_line = time.monotonic()

    def advance(self, num_bytes: int) -> None:
        """Count bytes; print a line if the last one is long enough ago."""
        self._num_bytes += num_bytes
        is_terminal = sys.stderr.isatty()
        interval = TERMINAL_PROGRESS_S if is_terminal else PROGRESS_S
        if time.monotonic() - self._last_line > interval:
            self._last_line = time.monotonic()
            say(self._line(), end="\r" if is_terminal else "\n")

    def finish(self) -> None:
        """Print the last line."""
        say(self._line())

    def _line(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-3)
        rate = megabytes((self._num_bytes - self._first_bytes) / seconds)
        of = "" if self._total is None else f" of {megabytes(self._total)}"
        # Padded, so that it overwrites the previous line on a terminal.
        return f"{self._name}: {megabytes(self._num_bytes)}{of}, {rate}/s".ljust(LINE_WIDTH)


def size(path: Path) -> int:
    """Return the bytes of a file, 0 if it is not there."""
    return path.stat().st_size if path.exists() else 0
