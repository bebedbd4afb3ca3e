"""Requests from outside to stop training: SIGTERM, SIGUSR1 and SIGINT.

A handler only notes the signal; the trainer looks at the note between slots, and ranks tell each
other in every update.
"""

import signal
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Self

from nmtkit.errors import InterruptedByUserError, NmtkitError, StoppedError


class StopRequest:
    """Notes the first signal that asks for a stop within the `with` block.

    SIGUSR1 is what schedulers can be told to send ahead of a job's end. A second SIGINT interrupts
    at once, without saving.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in self.SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
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
        return [float(self._received is number) for number in self.SIGNALS]

    def note(self, requests: Sequence[float]) -> None:
        """Note a signal that another rank received, if any did.

        Args:
            requests: the sum of the `requests` of all ranks.
        """
        if self._received is None and any(requests):
            self._received = max(zip(requests, self.SIGNALS, strict=True))[1]

    def error(self, update: int) -> NmtkitError:
        """Make the error with which a run ends that was stopped, and saved after an update."""
        assert self._received is not None, "nothing asked for a stop"
        kind = InterruptedByUserError if self._received is signal.SIGINT else StoppedError
        when = f"after update {update}, which is saved" if update else "before its first update"
        return kind(
            f"stopped by {self._received.name} {when}; run the same command again to continue"
        )

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._received is signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = signal.Signals(number)
