"""Signals that ask a command to end: SIGINT, SIGTERM, SIGUSR1 and SIGHUP.

`nmtkit_cli.main` blocks them before it imports anything, so none is lost or shown as a traceback. A
command handles them while it works: training by `StopRequest`, every other command by
`ended_by_signals`. Afterwards they are blocked again, so none changes the exit code.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Self

from nmtkit.errors import InterruptedByUserError, NmtkitError, StoppedError

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""The signals; schedulers can send SIGUSR1 before the end of a job."""

_WATCH_S = 0.02


class EndedBySignal(KeyboardInterrupt):
    """A signal other than SIGINT ends the command.

    Attributes:
        signal: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


def handled_signals() -> list[signal.Signals]:
    """Return the signals, except those that this process ignores, as SIGHUP under nohup."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Unblock the signals and handle them; at the end, block them again if they were blocked.

    Python only notes a signal when it arrives, and runs its handler before a later instruction. One
    that arrives in the microseconds before this thread waits, for a line of a pipe perhaps, is
    handled when the wait ends or at the next signal.
    """
    numbers = handled_signals()

    def handle(number: int, frame: FrameType | None) -> None:
        # Python runs handlers in this thread, also of a signal that this one blocks and that a
        # thread of torch took. Sent to this thread alone, it waits until it is unblocked here.
        if number in signal.pthread_sigmask(signal.SIG_BLOCK, []):
            signal.pthread_kill(threading.get_ident(), number)
        else:
            handler(number, frame)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)  # the handler may raise here
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # and here, the last time
    finally:
        for number, one in previous.items():
            signal.signal(number, one)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt or `EndedBySignal` at the first signal, so that all is cleaned up.

    Later signals are ignored: they would interrupt the cleanup.
    """
    received: list[KeyboardInterrupt] = []
    is_ending = False

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal is_ending
        received.append(KeyboardInterrupt() if number == signal.SIGINT else EndedBySignal(number))
        if not is_ending:
            is_ending = True
            raise received[-1]

    def keep(dropped: "sys.UnraisableHookArgs") -> None:
        nonlocal is_ending
        if dropped.exc_value in received:
            is_ending = False
        else:
            previous(dropped)

    # Python drops an exception that is raised within a `__del__`: a later signal, or the end of the
    # context, raises it again.
    previous, sys.unraisablehook = sys.unraisablehook, keep
    try:
        with handling(end):
            yield
    finally:
        sys.unraisablehook = previous
    if received:
        raise received[0]


@contextmanager
def block_stop_signals() -> Iterator[None]:
    """Block the signals while the context lasts; child processes inherit this.

    Whatever must be done whole, or undone, is done in such a context.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handled_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ended_by_interrupt(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` in another thread at SIGINT, where the signals are blocked.

    They stay blocked: threads that an import starts inherit this, and would receive them later.
    """
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            if signal.sigtimedwait([signal.SIGINT], _WATCH_S):
                end()

    if signal.SIGINT not in handled_signals():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def next_request(timeout_s: float) -> signal.Signals | None:
    """Return a blocked stop signal, waiting for one up to `timeout_s`; None if there is none."""
    taken = signal.sigtimedwait(handled_signals(), timeout_s)
    return signal.Signals(taken.si_signo) if taken else None


class StopRequest:
    """Stores the first stop signal that arrives in its context.

    A second SIGINT raises KeyboardInterrupt immediately; nothing is saved then.
    """

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._is_interrupted = False
        self._handling = handling(self._handle)

    def __enter__(self) -> Self:
        self._handling.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self._handling.__exit__(None, None, None)  # it only undoes what it did

    @property
    def is_requested(self) -> bool:
        """A signal has arrived."""
        return self._received is not None

    @property
    def requests(self) -> list[float]:
        """One number for each of `STOP_SIGNALS`: 1 for the signal that arrived here, else 0."""
        return [float(self._received is number) for number in STOP_SIGNALS]

    def note(self, requests: Sequence[float]) -> None:
        """Store a signal that another rank received, if any did.

        Args:
            requests: the `requests` of all ranks, summed for each signal.
        """
        if self._received is None and any(requests):
            self._received = max(zip(requests, STOP_SIGNALS, strict=True))[1]

    def error(self, update: int) -> NmtkitError:
        """Make the error that ends a stopped run.

        Args:
            update: the last update, which is saved; 0 = none.
        """
        assert self._received is not None, "no stop was requested"
        kind = InterruptedByUserError if self._received is signal.SIGINT else StoppedError
        when = f"after update {update}, which is saved" if update else "before its first update"
        return kind(
            f"stopped by {self._received.name} {when}; run the same command again to continue"
        )

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted |= number == signal.SIGINT
        self._received = self._received or signal.Signals(number)
