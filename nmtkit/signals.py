"""Signals that ask a command to end: SIGINT, SIGTERM, SIGUSR1 and SIGHUP.

`nmtkit_cli.main` blocks them before it imports anything, so none is lost or shown as a traceback. A
command handles them while it works: training by `nmtkit.training.stopping`, every other command by
`ended_by_signals`. Afterwards they are blocked again, so none changes the exit code.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""The signals; schedulers can send SIGUSR1 before the end of a job."""

_WAKE = signal.SIGURG  # sent to threads of this process alone; ignored where nothing handles it
_WAKE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_NO_SIGNAL = 0


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
    """Unblock the signals and handle them; at the end, block them again if they were blocked."""
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
        with _waking():
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
def _waking() -> Iterator[None]:
    """Let no signal wait for what this thread, the main one, waits for.

    Python only notes a signal when it arrives: its handler runs before a later instruction, or when
    the signal interrupts a system call. One that arrives just before such a call, a read of a pipe
    perhaps, would wait for its end. Hence another thread interrupts this one after each signal,
    until Python has run what it noted.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    waiting, over, is_awake = threading.get_ident(), threading.Event(), False

    def awake(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_awake
        is_awake = True

    def wake() -> None:
        nonlocal is_awake
        while not over.is_set():
            if set(os.read(reader, 64)) <= {_WAKE, _NO_SIGNAL}:
                continue
            is_awake, pause_s = False, _WAKE_S
            # Usually the handlers have run by then; they are not to interrupt each other.
            while not (over.wait(pause_s) or is_awake):
                signal.pthread_kill(waiting, _WAKE)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    thread = threading.Thread(target=wake, daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()  # inherits what is blocked
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    handler = signal.signal(_WAKE, awake)
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(_WAKE, handler or signal.SIG_DFL)  # None: it was not Python's
        over.set()
        with suppress(BlockingIOError):  # a full pipe ends the wait, too
            os.write(writer, bytes([_NO_SIGNAL]))
        thread.join()
        os.close(writer)
        os.close(reader)


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
    numbers = [signal.SIGINT, _WAKE]

    def watch() -> None:
        if signal.sigwait(numbers) == signal.SIGINT:
            end()

    if signal.SIGINT not in handled_signals():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        assert watcher.ident is not None, "it was started"
        signal.pthread_kill(watcher.ident, _WAKE)
        watcher.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
