"""Programs as metrics: any program that scores segments, run by the shell.

The program reads a line per segment from standard input: source, translation and at least one
reference, separated by tabs. Missing texts are empty. It writes a number per line to standard
output. Its messages go to the standard error of this process.
"""

import math
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from nmtkit.errors import ConfigError, DataError, NmtkitError, ProgramError, ResourceError
from nmtkit.signals import handled_signals
from nmtkit.text.lines import one_line
from nmtkit.units import counted

_SHELL = "/bin/sh"
_NO_PERMISSION, _NOT_FOUND = 126, 127
"""Exit codes of the shell if it cannot run a program."""
_KILLED = 128
"""Exit code of the shell for a program that a signal killed, less the number of the signal."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

_NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
MAX_NUMBER_BYTES = 1000
"""Longest line that is read as a number."""
_SHOWN_BYTES = 40

END_TIMEOUT_S = 5.0
"""A program that is not needed any more is asked to end, and killed after this time.

It may have to end others, as in a container or on another machine.
"""
_POLL_S = 0.02


@dataclass(frozen=True)
class Segment:
    """A translation to score.

    Attributes:
        source: the source text; "" = unknown.
        translation: the translation.
        references: any number of references.
    """

    source: str
    translation: str
    references: tuple[str, ...]


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
    with _temporary_file(name, segments) as stdin, _running(name, command, stdin) as running:
        # One line too many is enough for a message; the rest is not read.
        lines: list[bytes] = []
        while len(lines) <= len(segments) and (line := running.stdout.readline(MAX_NUMBER_BYTES)):
            lines.append(line)
            if on_score is not None:
                on_score()
        # A program that writes on would wait for its reader.
        status = running.wait() if len(lines) <= len(segments) else 0
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


@dataclass(frozen=True)
class _Running:
    """A program that runs.

    Attributes:
        pid: its process id, and that of its process group.
        stdout: what it writes.
    """

    pid: int
    stdout: BinaryIO

    def wait(self) -> int:
        """Wait for its end; return its exit code, or the signal that killed it as the shell does.

        Its process id stays reserved, so that its process group can be ended.
        """
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None, "it waits without WNOHANG"
        is_exit = found.si_code == os.CLD_EXITED
        return found.si_status if is_exit else _KILLED + found.si_status

    def end(self) -> None:
        """End what is left of its process group: ask first, kill after `END_TIMEOUT_S`."""
        deadline = time.monotonic() + END_TIMEOUT_S
        self._signal(signal.SIGTERM)
        ended = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while os.waitid(os.P_PID, self.pid, ended) is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._signal(signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _signal(self, number: signal.Signals) -> None:
        # Some systems forbid signals to a group whose processes have all ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


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
    texts = (segment.source, segment.translation, *(segment.references or ("",)))
    return "\t".join(one_line(text).replace("\t", " ") for text in texts) + "\n"


@contextmanager
def _running(name: str, command: str, stdin: BinaryIO) -> Iterator[_Running]:
    """Run a command in the shell, in a process group of its own; end the group with the context."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stdout:
        # Signals are blocked from before its start until its end is certain, whatever they raise.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, handled_signals())
        try:
            try:
                running = _Running(_start(name, command, stdin.fileno(), writing, before), stdout)
            finally:
                os.close(writing)
            try:
                try:
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
                    yield running
                finally:
                    signal.pthread_sigmask(signal.SIG_BLOCK, handled_signals())
            finally:
                running.end()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(name: str, command: str, stdin: int, stdout: int, signal_mask: Collection[int]) -> int:
    """Start the shell on these descriptors, and return its process id."""
    try:
        # Unlike subprocess, it sets the signals that are blocked in the new process.
        return os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", command],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)],
            setpgroup=0,
            setsigmask=signal_mask,
            setsigdef=_IGNORED_BY_PYTHON,
        )
    except OSError as error:
        raise ResourceError(
            f"metric {name}: {_SHELL} cannot be started ({error.strerror}); end other processes, "
            "or free memory"
        ) from error


def _failure(name: str, status: int) -> NmtkitError:
    """Return the error of a program that ended with this exit code, which is not 0."""
    if status == _NOT_FOUND:
        return ConfigError(
            f"metric {name}: the shell does not find its program; give the full path of the "
            "program, or correct PATH [metrics.metric_command]"
        )
    if status == _NO_PERMISSION:
        return ConfigError(
            f"metric {name}: the shell cannot execute its program; make the file executable, or "
            "write its interpreter before it [metrics.metric_command]"
        )
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
    if _NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    shown = ascii(text[:_SHOWN_BYTES].decode("utf-8", "replace"))
    shown += "..." if len(text) > _SHOWN_BYTES else ""
    raise DataError(
        f"metric {name}: line {number} of the program's output is {shown}, not a finite number; "
        "it must write one number per line, and everything else to standard error"
    )
