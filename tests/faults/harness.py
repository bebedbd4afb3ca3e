"""Kill a process, or make it fail, before its k-th change on disk through `os`.

Tests use `run_in_child`, which forks, and `fault_points`, which finds all k.

kill: SIGKILL. enospc, eio: the call raises that error, once. count: nothing fails.
"""

import errno
import gc
import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.errors import NmtkitError

CHANGES = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "chmod", "ftruncate", "open")
WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT
USED_LATER = ("torch._dynamo", "sacrebleu.metrics")
"""Modules that training imports late, which takes a second: once instead of in each fork."""

ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO}


@dataclass
class Fault:
    """A fault before change `at`, counted from 1, and the number of changes so far."""

    mode: str
    at: int
    num_changes: int = 0

    def before_change(self) -> None:
        self.num_changes += 1
        if self.num_changes != self.at or self.mode == "count":
            return
        if self.mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(ERRORS[self.mode], os.strerror(ERRORS[self.mode]))


@contextmanager
def injected(fault: Fault, *, is_synced: bool) -> Iterator[None]:
    """Call a fault before every change through `os`; without `is_synced`, fsync does nothing."""
    originals = {name: getattr(os, name) for name in CHANGES}
    try:
        for name, original in originals.items():
            setattr(os, name, _watched(fault, name, original, is_synced))
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def _watched(
    fault: Fault, name: str, original: Callable[..., Any], is_synced: bool
) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        if name != "open" or arguments[1] & WRITING_FLAGS:
            fault.before_change()
        if name == "fsync" and not is_synced:
            return None
        return original(*arguments, **keywords)

    return call


@dataclass(frozen=True)
class Outcome:
    """How a child ended: killed or not, its exception ("" = none), its number of changes."""

    is_killed: bool
    exception: str
    num_changes: int


def run_in_child(action: Callable[[], object], fault: Fault) -> Outcome:
    """Run an action in a fork of this process, with a fault and without fsync."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        os.write(writer, f"{_exception_of(action, fault)}\0{fault.num_changes}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        exception, _, count = stream.read().partition("\0")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return Outcome(status != 0, exception, int(count or 0))


def _exception_of(action: Callable[[], object], fault: Fault) -> str:
    try:
        with injected(fault, is_synced=False):
            action()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def start(action: Callable[[], object], log: Path) -> int:
    """Start an action in a fork of this process, in its own process group; return its id.

    Its exit code is that of the command line. Its standard error and its traceback are appended to
    the log.
    """
    child = fork()
    if child:
        with suppress(OSError):  # the child has set it already, or has ended
            os.setpgid(child, child)
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        with log.open("a") as stream, redirect_stderr(stream):
            code = _exit_code_of(action)
    finally:
        os._exit(code)


def _exit_code_of(action: Callable[[], object]) -> int:
    try:
        action()
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        traceback.print_exc()
        return error.exit_code if isinstance(error, NmtkitError) else 1
    return 0


def wait(child: int) -> int:
    """Wait for a process of `start`; return its exit code, or the negative signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def held_by_another_process(context: AbstractContextManager[object]) -> Iterator[int]:
    """Yield the id of a fork of this process that is in a context, and kill it afterwards."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        with context:
            os.write(writer, b"entered")
            signal.pause()
    try:
        assert os.read(reader, 7) == b"entered"
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def fork() -> int:
    """Fork this process without Python's warning.

    The child never collects the garbage of this process, whose finalisers could change the disk,
    and computes on one thread: those that torch has started here are not in the child.
    """
    if "torch" in sys.modules:
        for name in USED_LATER:
            importlib.import_module(name)
    with warnings.catch_warnings():
        # Python warns about forks while other threads run; the child runs none of their code.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        gc.freeze()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
    return child


def fault_points(action: Callable[[], object]) -> range:
    """Run an action in a fork of this process; return the numbers of its changes."""
    outcome = run_in_child(action, Fault("count", 0))
    assert not outcome.exception, outcome
    return range(1, outcome.num_changes + 1)
