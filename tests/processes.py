"""Processes that a test did not start itself."""

import multiprocessing
import os
import select
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import SimpleNamespace

import pytest

DEADLINE_S = 30.0
ASLEEP_S = 0.05


def has_ended(pid: int) -> bool:
    """Return whether a process ends within the deadline."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEADLINE_S)[0])
    finally:
        os.close(descriptor)


def wait_until_asleep(pid: int) -> None:
    """Wait until the main thread of a process waits for something, such as a line of a pipe.

    A signal that arrives just before would be handled when the wait ends.
    """
    status, seen = Path(f"/proc/{pid}/status"), ""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        lines = status.read_text("ascii").splitlines()
        before, seen = seen, next(line for line in lines if line.startswith("voluntary_ctxt"))
        if before == seen and any(line.startswith("State:\tS") for line in lines):
            return
        time.sleep(ASLEEP_S)
    raise TimeoutError(f"process {pid} does not wait: {lines}")


class _Fork(ForkProcess):
    def start(self) -> None:
        with warnings.catch_warnings():
            # Python warns about forks while other threads run; workers run none of their code.
            warnings.simplefilter("ignore", DeprecationWarning)
            super().start()


@contextmanager
def workers_as_forks() -> Iterator[None]:
    """Have workers forked: they need not import again what this process has imported.

    A fork holds the pipes of earlier ones open, so that these do not end when this process closes
    its own; what is left at the end is killed.
    """
    before = {*multiprocessing.active_children()}
    with pytest.MonkeyPatch.context() as patched:
        context = SimpleNamespace(Process=_Fork)
        patched.setattr(multiprocessing, "get_context", lambda _: context)
        try:
            yield
        finally:
            for process in {*multiprocessing.active_children()} - before:
                process.kill()
                process.join()
