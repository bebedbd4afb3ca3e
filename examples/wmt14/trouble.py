"""What can go wrong while fetching, and how it is told: nmtkit's exit codes, one line an error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USAGE, BAD_TEXT, DAMAGED, NO_ROOM, TRY_AGAIN, INTERRUPTED = 2, 3, 4, 5, 75, 130


class FetchError(Exception):
    """What a user can mend: what, where, how; and the exit code that it ends with."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Report what the operating system refuses as an error that names the path."""
    try:
        yield
    except OSError as error:
        raise FetchError(
            NO_ROOM, f"{path}: {error.strerror or error}; free space there, or choose another place"
        ) from error


def megabytes(num_bytes: float) -> str:
    """Write a number of bytes for people."""
    return f"{num_bytes / 1e6:,.1f} MB"


def say(message: str, end: str = "\n") -> None:
    """Tell the user something."""
    sys.stderr.write(f"{message}{end}")
    sys.stderr.flush()
