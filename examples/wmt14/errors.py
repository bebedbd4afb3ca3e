"""Errors of fetching: nmtkit's exit codes, one line per error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USAGE, BAD_TEXT, DAMAGED, NO_ROOM, TRY_AGAIN, INTERRUPTED = 2, 3, 4, 5, 75, 130


class FetchError(Exception):
    """An error that a user can fix: one line (what, where, how) and its exit code."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn operating system errors into FetchErrors that name the path."""
    try:
        yield
    except OSError as error:
        raise FetchError(
            NO_ROOM, f"{path}: {error.strerror or error}; free space there, or choose another place"
        ) from error


def megabytes(num_bytes: float) -> str:
    """Format a number of bytes in megabytes."""
    return f"{num_bytes / 1e6:,.1f} MB"


def say(message: str, end: str = "\n") -> None:
    """Print a message to stderr."""
    sys.stderr.write(f"{message}{end}")
    sys.stderr.flush()
