"""Signals that request a stop of training: SIGTERM, SIGUSR1, SIGINT and SIGHUP.

The handler only stores the signal. The trainer checks it between micro-batches, and ranks exchange
it in every update. Until the handler is installed, signals are blocked, so that none is lost while
a process starts.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from nmtkit.errors import InterruptedByUserError, NmtkitError, StoppedError

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""Signals that request a stop; schedulers can send SIGUSR1 before the end of a job."""


def handled_signals() -> list[signal.Signals]:
    """Return the stop signals that are handled: all, without SIGHUP where nohup ignores it."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [n for n in STOP_SIGNALS if not (ignores_hangup and n is signal.SIGHUP)]


@contextmanager
def block_stop_signals() -> Iterator[None]:
    """Block stop signals until a `StopRequest` handles them, or the context ends.

    Child processes inherit the blocked signals. Enter the context before importing torch: it
    starts threads, and a thread could receive a signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handled_signals())
    try:
        yield
    finally:
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
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in handled_signals():
            self._previous[number] = signal.signal(number, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

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
