"""Processes that a test did not start itself."""

import multiprocessing
import os
import select
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkProcess
from types import SimpleNamespace

import pytest

DEADLINE_S = 30.0


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
