"""Processes that take a share of a command's work.

Ctrl-C reaches every process of a terminal, and what a scheduler sends may reach every process of a
job. These do not hear it: the command itself ends them, and they end when it is gone.
"""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, TypeVar

from nmtkit.errors import NmtkitError, ResourceError

REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
"""Signals that ask a command to end, in which it may still need its workers."""

_TOLD = (NmtkitError, MemoryError, OSError)
"""What a worker tells; of anything else it dies, with a traceback."""

Received = TypeVar("Received")


class Worker(Generic[Received]):
    """A process that is sent work and sends back what becomes of it; it ends when its parent does.

    It may run ahead of what is received by what a pipe holds, and one message beyond.
    """

    def __init__(self, serve: Callable[["Connection[Received, Any]"], None], remedy: str) -> None:
        """Start the process.

        Args:
            serve: what it does with its end of a pipe; sent by name.
            remedy: what a user does who has too little memory for it.
        """
        self._remedy = remedy
        self._connection, workers_end = multiprocessing.Pipe()
        # What it works with is sent later: as an argument, it would block the start of a child
        # that dies early.
        self._process = start_worker(_until_parent_ends, (serve, workers_end), REQUESTS)
        # Kept open here, it would hide the worker's death.
        workers_end.close()

    def send(self, message: object) -> None:
        """Send it something; if it is gone, `receive` tells why."""
        with suppress(OSError):
            self._connection.send(message)

    def receive(self) -> Received:
        """Wait for what it sends next.

        Raises:
            ResourceError: it was killed.
            NmtkitError, MemoryError, OSError: what it raised.
        """
        try:
            received: Received | Exception = self._connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        if isinstance(received, Exception):
            raise received
        return received

    def end(self) -> None:
        """End the process, whatever it is at."""
        self._connection.close()
        self._process.kill()
        self._process.join()

    def _death(self) -> ResourceError:
        self._process.join()
        return ResourceError(
            f"a worker process ended early (exit code {self._process.exitcode}); if memory is "
            f"short, {self._remedy}"
        )


def start_worker(
    target: Callable[..., None],
    arguments: tuple[Any, ...],
    unheard: Sequence[signal.Signals],
) -> SpawnProcess:
    """Start a process that is deaf to some signals from its first instruction on.

    One that comes meanwhile reaches this process when the other has been started.

    Args:
        target: what it runs; sent by name.
        arguments: what that is called with; sent to it.
        unheard: the signals.
    """
    # Spawned rather than forked: a fork would copy locks that the threads of this process hold.
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=target, args=arguments, daemon=True)
    # It would be started otherwise below, and have this thread hear again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, unheard)
    try:
        process.start()  # inherits what is blocked
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _until_parent_ends(
    serve: Callable[["Connection[Received, Any]"], None],
    connection: "Connection[Received | Exception, Any]",
) -> None:
    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        try:
            serve(connection)
        except _TOLD as error:
            connection.send(error)
