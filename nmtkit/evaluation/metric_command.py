"""Programs as metrics: any program that scores segments, run by the shell.

The program reads a line per segment from standard input: source, translation and at least one
reference, separated by tabs. Missing texts are empty. It writes a number per line to standard
output. Its messages go to the standard error of this process.
"""

import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO

from nmtkit.errors import ConfigError, DataError, NmtkitError, ProgramError, ResourceError
from nmtkit.runtime.environment import environment_of_users
from nmtkit.signals import block_stop_signals
from nmtkit.text.lines import one_line
from nmtkit.units import counted

_SHELL = "/bin/sh"
_CANNOT_RUN = {
    126: "cannot execute its program; make the file executable, or write its interpreter before it",
    127: "does not find its program; give the full path of the program, or correct PATH",
}
"""What is wrong, and how to fix it, by exit codes of a shell that cannot run a program."""
_KILLED = 128
"""Exit code of the shell for a program that a signal killed, less the number of the signal."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

_NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
LARGEST = 1e30
"""Sums of as many numbers as a text has lines stay finite, in single precision too."""
MAX_NUMBER_BYTES = 1000
"""Longest line that is read as a number."""
_SHOWN_BYTES = 40

END_TIMEOUT_S = 5.0
"""A program that is not needed any more is asked to end, and killed after this time.

It may have to end others, as in a container or on another machine.
"""
_POLL_S = 0.02


Segment = Sequence[str]
"""A source text ("" = unknown), its translation, and at least one reference ("" = none)."""


def run_metric_command(
    name: str,
    command: str,
    segments: Sequence[Segment],
    on_score: Callable[[], object] | None = None,
) -> list[float]:
    """Run a program once and return the scores of segments, in order.

    The program is not run if there are no segments. If this function ends by an exception, such
    as KeyboardInterrupt, the program and the processes that it started are ended first.

    Args:
        name: name of the metric in messages.
        command: the command line, for the shell.
        segments: tabs and line ends in their texts become spaces.
        on_score: called for each line that the program has written.

    Raises:
        ConfigError: the program is not found or not executable.
        ProgramError: it ends with another exit code than 0, or is killed.
        DataError: it writes another number of lines, or a line that is no finite number.
        ResourceError: it cannot be started, or the disk for temporary files is full.
    """
    if not segments:
        return []
    with _temporary_file(name, segments) as stdin:
        lines, status = _run(name, command, stdin, len(segments), on_score)
    if status:
        raise _failure(name, status)
    scores = [_number(name, number, line) for number, line in enumerate(lines, 1)]
    if len(scores) != len(segments):
        is_more = len(scores) > len(segments)
        found = "more lines than that" if is_more else counted(len(scores), "lines")
        raise DataError(
            f"metric {name}: the program read {counted(len(segments), 'lines')} and wrote {found}; "
            "it must write one number per line that it reads, and flush its output at the end"
        )
    return scores


def _temporary_file(name: str, segments: Sequence[Segment]) -> BinaryIO:
    """Return the lines of segments as a file, which a program reads at any speed, or not at all.

    A pipe would have to be written while the output is read.
    """
    try:
        stream = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            stream.writelines(_line(segment).encode() for segment in segments)
            stream.seek(0)
        except OSError:
            with suppress(OSError):  # it would write the rest again
                stream.close()
            raise
    except OSError as error:
        raise ResourceError(
            f"metric {name}: its input cannot be written to a temporary file ({error.strerror}); "
            "free space, or set TMPDIR to another folder"
        ) from error
    return stream


def _line(segment: Segment) -> str:
    return "\t".join(one_line(text).replace("\t", " ") for text in segment) + "\n"


def _run(
    name: str,
    command: str,
    stdin: BinaryIO,
    num_lines: int,
    on_score: Callable[[], object] | None,
) -> tuple[list[bytes], int]:
    """Run a command in the shell, in a process group of its own, which has ended on return.

    Returns:
        At most one line more than expected; its exit code, which is 0 if there is such a line.
    """
    reading, writing = os.pipe()
    pid = 0
    with os.fdopen(reading, "rb") as stdout:
        try:
            with block_stop_signals():  # one after the start would lose the process id
                pid = _start(name, command, stdin.fileno(), writing)
            return _read(pid, stdout, num_lines, on_score)
        finally:
            if pid:
                with block_stop_signals():
                    _end(pid)


def _read(
    pid: int, stdout: BinaryIO, num_lines: int, on_score: Callable[[], object] | None
) -> tuple[list[bytes], int]:
    """Read the output of a program, and wait for its end; see `_run`."""
    threading.Thread(target=_end_group_with, args=(pid,), daemon=True).start()
    lines: list[bytes] = []
    while line := stdout.readline(MAX_NUMBER_BYTES):
        lines.append(line)
        if len(lines) > num_lines:  # it may write for ever
            return lines, 0
        if on_score is not None:
            on_score()
    # Its process id stays reserved, so that its process group can be ended.
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None, "it waits without WNOHANG"
    is_exit = ended.si_code == os.CLD_EXITED
    return lines, ended.si_status if is_exit else _KILLED + ended.si_status


def _end_group_with(pid: int) -> None:
    """Wait until a shell has ended, and kill what it has left running, which may hold the pipe."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        _signal(pid, signal.SIGKILL)


def _end(pid: int) -> None:
    """End what is left of a process group: ask first, kill after `END_TIMEOUT_S`."""
    deadline = time.monotonic() + END_TIMEOUT_S
    _signal(pid, signal.SIGTERM)
    has_ended = os.WEXITED | os.WNOWAIT | os.WNOHANG
    while os.waitid(os.P_PID, pid, has_ended) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    _signal(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _signal(group: int, number: signal.Signals) -> None:
    # Some systems forbid signals to a group whose processes have all ended.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _start(name: str, command: str, stdin: int, stdout: int) -> int:
    """Start the shell in a process group of its own, and return its process id.

    Args:
        name: name of the metric in messages.
        command: the command.
        stdin, stdout: descriptors of its standard input and output; the second is closed here.
    """
    try:
        return os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", command],
            environment_of_users(),
            file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)],
            setpgroup=0,
            setsigmask=(),
            setsigdef=_IGNORED_BY_PYTHON,
        )
    except OSError as error:
        raise ResourceError(
            f"metric {name}: {_SHELL} cannot be started ({error.strerror}); end other processes, "
            "or free memory"
        ) from error
    finally:
        os.close(stdout)


def _failure(name: str, status: int) -> NmtkitError:
    """Return the error of a program that ended with this exit code, which is not 0."""
    if status in _CANNOT_RUN:
        problem = _CANNOT_RUN[status]
        return ConfigError(f"metric {name}: the shell {problem} [metrics.metric_command]")
    how = f"failed with exit code {status}"
    if status - _KILLED in signal.valid_signals():
        how = f"was ended by {signal.Signals(status - _KILLED).name}"
    return ProgramError(
        f"metric {name}: the program {how}; its own messages are above, and it must read lines of "
        "source, translation and references, separated by tabs"
    )


def _number(name: str, number: int, line: bytes) -> float:
    """Read a line of the output as a finite number."""
    text = line.strip()
    if _NUMBER.fullmatch(text) and abs(value := float(text)) <= LARGEST:
        return value
    shown = ascii(text[:_SHOWN_BYTES].decode("utf-8", "replace"))
    shown += "..." if len(text) > _SHOWN_BYTES else ""
    raise DataError(
        f"metric {name}: line {number} of the program's output is {shown}, not a finite number; "
        "it must write one number up to 1e30 per line, and everything else to standard error"
    )
