"""Programs as metrics: any command that reads segments and writes a number for each.

The program reads a line per segment from its standard input: source, translation and references,
separated by tabs, as UTF-8. It writes a line with a finite number per segment to its standard
output, higher is better. What it writes to standard error goes to that of nmtkit.
"""

import hashlib
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nmtkit.errors import ConfigError, DataError
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.units import counted

_GRACE_S = 5
"""Seconds from the request to end to the kill."""
_MAX_NUMBER_BYTES = 1000
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
"""Exit statuses of the shell."""


@dataclass(frozen=True)
class Segment:
    """A line of a text with its translation.

    Attributes:
        source: the source; "" = unknown.
        translation: the translation to score.
        references: any number of them.
    """

    source: str
    translation: str
    references: tuple[str, ...]


def run_metric_command(name: str, command: str, segments: Sequence[Segment]) -> list[float]:
    """Run a program on segments, by the shell; return a score per segment.

    Args:
        name: name of the metric in messages.
        command: the command line.
        segments: any number; without any, the program does not run.

    Raises:
        ConfigError: the program does not exist, or failed.
        DataError: its output is not a finite number per segment.
        ResourceError: no space for the temporary file of its input.
    """
    if not segments:
        return []
    where = f"--metric-command {name}"
    with disk_errors(Path(tempfile.gettempdir())), tempfile.TemporaryFile() as lines:
        lines.writelines(map(_line, segments))
        lines.seek(0)
        with _running(command, lines) as process:
            assert process.stdout is not None, "it is a pipe"
            scores = _read_numbers(process.stdout, len(segments), where)
            status = process.wait()
    if status:
        raise ConfigError(f"{where}: {_failure(status)}: {command}")
    if len(scores) < len(segments):
        raise DataError(
            f"{where}: {counted(len(scores), 'numbers')} for {counted(len(segments), 'segments')}; "
            "the program must write one number per line that it reads"
        )
    return scores


def fingerprint(command: str) -> str:
    """Return the beginning of the SHA-256 hash of a command, for signatures."""
    return hashlib.sha256(command.encode("utf-8", "surrogateescape")).hexdigest()[:8]


@contextmanager
def _running(command: str, lines: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command in a process group of its own, which ends with the context."""
    process = subprocess.Popen(
        command, shell=True, stdin=lines, stdout=subprocess.PIPE, process_group=0
    )
    try:
        yield process
    finally:
        if process.stdout is not None:
            process.stdout.close()
        if process.poll() is None:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a command with all that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return


def _line(segment: Segment) -> bytes:
    texts = (segment.source, segment.translation, *segment.references)
    one_line = (text.replace("\t", " ").replace("\n", " ") for text in texts)
    return ("\t".join(one_line) + "\n").encode()


def _read_numbers(output: IO[bytes], count: int, where: str) -> list[float]:
    """Read numbers to the end; DataError for other lines, and for more than `count`."""
    numbers: list[float] = []
    while line := output.readline(_MAX_NUMBER_BYTES):
        if len(numbers) == count:
            raise DataError(
                f"{where}: more than {counted(count, 'lines')} for {counted(count, 'segments')}; "
                "the program must write one number per line that it reads, and messages to "
                "standard error"
            )
        numbers.append(_number(line, f"{where}, line {len(numbers) + 1} of its output"))
    return numbers


def _number(line: bytes, where: str) -> float:
    text = line.decode("utf-8", "replace").strip()
    try:
        number = float(text)
    except ValueError:
        raise DataError(
            f"{where}: {text[:40]!r} is not a number; the program must write nothing else to "
            "standard output"
        ) from None
    if not math.isfinite(number):
        raise DataError(f"{where}: {text} is not finite; the program must write a finite number")
    return number


def _failure(status: int) -> str:
    if status < 0:
        return f"the program was ended by {signal.Signals(-status).name}"
    if status in (_NOT_EXECUTABLE, _NOT_FOUND):
        return f"no such program (exit status {status}); install it, or fix the command"
    return f"the program failed with exit status {status}; see its messages"
