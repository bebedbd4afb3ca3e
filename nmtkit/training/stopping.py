"""Signals that request a stop of training.

The handler only stores the signal. The trainer checks it between micro-batches, and ranks exchange
it in every update. Until the handler is installed, signals are blocked, so that none is lost while
a process starts.
"""

import signal
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Self

from nmtkit.errors import InterruptedByUserError, NmtkitError, StoppedError
from nmtkit.signals import STOP_SIGNALS, handled_signals, handling


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handling.__exit__(kind, error, trace)

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
