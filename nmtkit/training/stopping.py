"""Requests from outside to stop training: SIGTERM and SIGINT.

A handler only notes the signal; the trainer looks at the note between slots.
"""

import signal
from types import FrameType, TracebackType
from typing import Self

from nmtkit.errors import InterruptedByUserError, NmtkitError, StoppedError


class StopRequest:
    """Notes the first SIGTERM or SIGINT that arrives within the `with` block.

    A second SIGINT interrupts at once, without saving.
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in self.SIGNALS:
            self._previous[number] = signal.signal(number, self._note)
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

    def error(self, update: int) -> NmtkitError:
        """Make the error with which a run ends that was stopped, and saved after an update."""
        assert self._received is not None, "nothing asked for a stop"
        kind = StoppedError if self._received is signal.SIGTERM else InterruptedByUserError
        when = f"after update {update}, which is saved" if update else "before its first update"
        return kind(
            f"stopped by {self._received.name} {when}; run the same command again to continue"
        )

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self._received is signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = signal.Signals(number)
