"""Standard input that is read to its end, output that loses nothing, errors that never fail.

Another process may have made a stream non-blocking: the mode belongs to the pipe or terminal that
they share. Such a stream is waited for.
"""

import os
import select
import sys
from contextlib import suppress
from io import BufferedReader, FileIO, RawIOBase, TextIOWrapper
from typing import TYPE_CHECKING

from nmtkit.errors import ResourceError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

STDERR = 2


class WaitingFile(FileIO):
    """A file to read, unbuffered; waits while a non-blocking one has no data.

    Python's own takes that for the end of the file.
    """

    read = RawIOBase.read  # type: ignore[assignment]  # reads by `readinto`, as does `readall`
    readall = RawIOBase.readall

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read into a buffer and return the number of bytes; 0 at the end."""
        while (num_read := super().readinto(buffer)) is None:
            _wait(self, select.POLLIN)
        return num_read


class StandardOutput(FileIO):
    """Standard output, unbuffered; a write returns when all bytes are written.

    A nearly full disk and a non-blocking pipe accept only part of a write. Python's own stream
    loses the rest with PYTHONUNBUFFERED, and when the pipe is full.
    """

    def write(self, data: "ReadableBuffer") -> int:
        """Write all of the data; waits while a non-blocking pipe is full."""
        remaining = memoryview(data).cast("B")
        num_bytes = len(remaining)
        while remaining:
            num_written = super().write(remaining)
            if num_written is None:
                _wait(self, select.POLLOUT)
            else:
                remaining = remaining[num_written:]
        return num_bytes


class ClosedOutput(RawIOBase):
    """Standard output that is closed."""

    def writable(self) -> bool:
        """Return True, so that `write` is called."""
        return True

    def write(self, _data: "ReadableBuffer") -> int:
        """Raise ResourceError."""
        raise ResourceError("standard output is closed; redirect it into a file")


class StandardError(StandardOutput):
    """Standard error, unbuffered; drops what cannot be written.

    No message may end a command or change its exit code, whether the disk is full, the terminal is
    closed, or the reader of a pipe is gone.
    """

    def write(self, data: "ReadableBuffer") -> int:
        """Write the data as far as possible; returns the size of all of it."""
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes


def open_standard_input() -> None:
    """Make `sys.stdin` read through a `WaitingFile`; nothing changes if it is closed."""
    if sys.stdin is not None:
        file = WaitingFile(sys.stdin.fileno(), "rb", closefd=False)
        sys.stdin = TextIOWrapper(BufferedReader(file), sys.stdin.encoding, sys.stdin.errors)


def open_standard_output() -> None:
    """Make `sys.stdout` write through a `StandardOutput`, or a `ClosedOutput` if it is closed."""
    if sys.stdout is None:
        sys.stdout = TextIOWrapper(ClosedOutput(), "utf-8", write_through=True)
    else:
        file = StandardOutput(sys.stdout.fileno(), "wb", closefd=False)
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = TextIOWrapper(file, encoding, errors, write_through=True)


def open_standard_error() -> None:
    """Make `sys.stderr` write through a `StandardError`; it writes nowhere if it is closed."""
    _fill_closed_descriptors()
    encoding, errors, descriptor = "utf-8", "backslashreplace", STDERR
    if sys.stderr is not None:
        encoding, errors = sys.stderr.encoding, sys.stderr.errors or errors
        descriptor = sys.stderr.fileno()
    file = StandardError(descriptor, "wb", closefd=False)
    sys.stderr = TextIOWrapper(file, encoding, errors, write_through=True)


def _wait(file: FileIO, event: int) -> None:
    """Wait until a file can be read or written, or its other end is closed."""
    poll = select.poll()  # select.select takes no descriptor above 1023
    poll.register(file, event)
    poll.poll()


def _fill_closed_descriptors() -> None:
    """Open the null device for each closed standard stream.

    The next file that is opened would take its place, and what libraries and children print.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(null, True)
    os.close(null)
