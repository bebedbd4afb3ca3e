"""`nmtkit` in forks of the test, which has imported torch already: processes without its seconds.

What a fork cannot show is for processes of their own: that a command starts, what it imports, how
it meets a terminal, signals and processes that it starts itself.
"""

import importlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from nmtkit.progress import counting
from nmtkit_cli import command_line, main
from tests.faults.harness import fork
from tests.processes import workers_as_forks

DEADLINE_S = 300
CLOSED = -1
"""Instead of a descriptor: a stream that is closed."""

# The commands, and what they import in their bodies, imported once for all forks.
for _name in command_line.COMMANDS:
    command_line.group.get_command(click.Context(command_line.group), _name)
for _name in (
    "decoding.workers",
    "evaluation.evaluate",
    "reporting.attention.view",
    "training.run",
    "training.selection",
):
    importlib.import_module(f"nmtkit.{_name}")


def nmtkit(
    *arguments: object,
    stdin: bytes | int = b"",
    folder: Path | None = None,
    stderr: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a folder; what it prints and how it ends is for the caller to see.

    Args:
        arguments: the command line.
        stdin: its standard input, or a descriptor for it.
        folder: its working directory; None = that of the test.
        stderr: a descriptor for its standard error; None = a file that the caller gets.
    """
    line = ["nmtkit", *map(str, arguments)]
    with ExitStack() as files:
        streams = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        if isinstance(stdin, bytes):
            streams[0].write(stdin)
            streams[0].seek(0)
        child = fork()
        if child == 0:
            descriptors = [stream.fileno() for stream in streams]
            if isinstance(stdin, int):
                descriptors[0] = stdin
            _be_the_command(
                line, descriptors if stderr is None else [*descriptors[:2], stderr], folder
            )
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for stream in streams[1:]:
            stream.seek(0)
        return subprocess.CompletedProcess(line, code, streams[1].read(), streams[2].read())


def as_text(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    """Return what a command did with its bytes as text."""
    out, told = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, told)


def nmtkit_in_text(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command line whose streams are text."""
    return as_text(nmtkit(*arguments, stdin=stdin.encode()))


def _be_the_command(line: list[str], descriptors: Sequence[int], folder: Path | None) -> None:
    """Run a command line on these standard streams, and end this process with its exit code."""
    signal.alarm(DEADLINE_S)  # kills it
    try:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if descriptors[number] == CLOSED:
                os.close(number)
                setattr(sys, name, None)
                continue
            os.dup2(descriptors[number], number)
            opened = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, opened)
        if folder is not None:
            os.chdir(folder)
        counting.FIRST_REPORT_S = math.inf  # however slow the machine is
        sys.argv = line
        with workers_as_forks():
            main.main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        with suppress(OSError):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(1)
