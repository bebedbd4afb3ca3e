"""Worker processes, among which a command divides its work: one protocol for all of them.

A worker receives messages, and sends back messages or the error that it raised. Ctrl-C reaches
every process of a terminal, and a scheduler's signals may reach every process of a job. Workers
ignore both, since a command may need them to end in order: it ends its workers, and the kernel
kills them if the command ends without doing so.
"""

import atexit
import multiprocessing
import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, TypeVar

from nmtkit.errors import NmtkitError, ResourceError
from nmtkit.runtime.environment import end_with_parent
from nmtkit.runtime.standard_streams import open_standard_error
from nmtkit.signals import STOP_SIGNALS

_REPORTED = (NmtkitError, MemoryError, OSError)
"""Errors that a worker reports; any other ends it with a traceback."""

Received = TypeVar("Received")


class Worker(Generic[Received]):
    """A process that receives work and sends back the results.

    It may run ahead of the receiver by the messages that fit into a pipe, and one more. It is
    killed when the thread that started it ends.

    Attributes:
        connection: this process's end of the pipe.
    """

    def __init__(
        self,
        serve: Callable[["Connection[Received | Exception, Any]"], None],
        lost: Callable[[int | None], NmtkitError],
    ) -> None:
        """Start the process.

        Args:
            serve: what it does with its end of a pipe; sent by name.
            lost: returns the error to raise when the process ends early, given its exit code.
        """
        self._lost = lost
        self.connection, workers_end = multiprocessing.Pipe()
        # What it works with is sent later: as an argument, it would block the start of a child
        # that dies early.
        self._process = _start(serve, workers_end)
        # Kept open here, it would hide the worker's death.
        workers_end.close()

    def send(self, message: object) -> None:
        """Send it something; if it is gone, `receive` raises why."""
        with suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Received:
        """Wait for its next message.

        Raises:
            NmtkitError: the worker sent or raised it, or the process ended early.
            MemoryError, OSError: the worker raised it.
        """
        try:
            received: Received | Exception = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            raise self._lost(self._process.exitcode) from None
        if isinstance(received, Exception):
            raise received
        return received

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        self._process.kill()
        self._process.join()
        atexit.unregister(self._process.kill)


def wait_for_any(workers: Collection[Worker[Received]]) -> list[Worker[Received]]:
    """Wait until some of these workers have sent a message or ended; return those, in order."""
    by_connection = {worker.connection: worker for worker in workers}
    ready = wait(by_connection)
    return [worker for connection, worker in by_connection.items() if connection in ready]


def ended_early(remedy: str) -> Callable[[int | None], ResourceError]:
    """Return a worker's `lost`, for work that needs memory.

    Args:
        remedy: what a user does about too little memory.
    """
    return lambda exit_code: ResourceError(
        f"a worker process ended early (exit code {exit_code}); if memory is short, {remedy}"
    )


def _start(serve: Callable[..., None], connection: "Connection[Any, Any]") -> SpawnProcess:
    """Start a process that ignores stop signals from its first instruction on.

    A request that comes meanwhile reaches this process when the other has been started.
    """
    # Spawned rather than forked: a fork would copy locks that the threads of this process hold.
    context = multiprocessing.get_context("spawn")
    process = context.Process(
        target=_until_parent_ends, args=(serve, connection, os.getpid()), daemon=True
    )
    # It would be started otherwise below, and unblock the signals of this thread.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        process.start()  # inherits what is blocked
        # At its end, this process would ask the worker by a signal that it ignores, and wait.
        # Registered before a signal can end this function.
        atexit.register(process.kill)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _until_parent_ends(
    serve: Callable[["Connection[Received | Exception, Any]"], None],
    connection: "Connection[Received | Exception, Any]",
    parent: int,
) -> None:
    end_with_parent(parent)
    open_standard_error()
    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        try:
            serve(connection)
        except _REPORTED as error:
            connection.send(error)
