"""Requests from outside to stop training: SIGTERM, SIGUSR1, SIGINT and SIGHUP.

A handler only notes the signal. The trainer looks at the note between micro-batches, and ranks
share it in every update. Until there is a handler, requests are held back, so that none is lost
while a process starts.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from nmtkit.errors import InterruptedByUserError, NmtkitError, StoppedError

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""What asks for a stop; SIGUSR1 is what schedulers can be told to send ahead of a job's end."""


def heeded_signals() -> list[signal.Signals]:
    """Return those of `SIGNALS` that count; SIGHUP does not where it is ignored, as by nohup."""
    is_deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in SIGNALS if number is not signal.SIGHUP or not is_deaf]


@contextmanager
def held_back() -> Iterator[None]:
    """Have requests wait until a `StopRequest` notes them, here or in a child, or the block ends.

    Enter it before threads are started, as by importing torch: they would take a signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heeded_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def next_request(timeout_s: float) -> signal.Signals | None:
    """Wait so long, at most, for a request that is held back, and take it."""
    taken = signal.sigtimedwait(heeded_signals(), timeout_s)
    return signal.Signals(taken.si_signo) if taken else None


class StopRequest:
    """Notes the first signal that asks for a stop within the `with` block.

    A second SIGINT interrupts at once, without saving.
    """

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._is_interrupted = False
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in heeded_signals():
            self._previous[number] = signal.signal(number, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
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
        """For each of `SIGNALS`, 1 if it was the one that arrived here, else 0."""
        return [float(self._received is number) for number in SIGNALS]

    def note(self, requests: Sequence[float]) -> None:
        """Note a signal that another rank received, if any did.

        Args:
            requests: the sum of the `requests` of all ranks.
        """
        if self._received is None and any(requests):
            self._received = max(zip(requests, SIGNALS, strict=True))[1]

    def error(self, update: int) -> NmtkitError:
        """Make the error with which a run ends that was stopped, and saved after an update."""
        assert self._received is not None, "nothing asked for a stop"
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
