"""A signal ends a command by an exception, once; before and after it waits."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from nmtkit.errors import InterruptedByUserError, StoppedError
from nmtkit.signals import (
    STOP_SIGNALS,
    EndedBySignal,
    StopRequest,
    block_stop_signals,
    ended_by_interrupt,
    ended_by_signals,
    handling,
    next_request,
)
from tests.faults.harness import Fault, run_in_child
from tests.messages import check_message

WAIT_S = 60
OTHERS = [number for number in STOP_SIGNALS if number is not signal.SIGINT]


@pytest.mark.parametrize("number", OTHERS)
def test_a_signal_is_raised_with_its_number(number: signal.Signals) -> None:
    with pytest.raises(EndedBySignal) as ended, ended_by_signals():
        os.kill(os.getpid(), number)
    assert ended.value.signal is number


def test_an_interrupt_is_raised_as_usual() -> None:
    with pytest.raises(KeyboardInterrupt) as ended, ended_by_signals():
        os.kill(os.getpid(), signal.SIGINT)
    assert type(ended.value) is KeyboardInterrupt


@pytest.mark.parametrize("later", STOP_SIGNALS)
def test_later_signals_do_not_interrupt_the_cleanup(later: signal.Signals) -> None:
    cleaned_up = []

    @contextmanager
    def cleaned() -> Iterator[None]:
        try:
            yield
        finally:
            os.kill(os.getpid(), later)
            cleaned_up.append(later)

    with pytest.raises(EndedBySignal) as ended, ended_by_signals(), cleaned():
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.signal is signal.SIGTERM
    assert cleaned_up == [later]


def test_contexts_can_be_nested() -> None:
    def work() -> None:
        with suppress(KeyboardInterrupt), ended_by_signals():
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGHUP)

    with pytest.raises(EndedBySignal) as ended, ended_by_signals():
        work()
    assert ended.value.signal is signal.SIGHUP


class SignalledWhenDeleted:
    """Raises a signal in `__del__`, where Python drops exceptions."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_python_drops_is_raised_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = []

    def work() -> None:
        SignalledWhenDeleted()
        steps.append("done")

    with pytest.raises(EndedBySignal) as ended, ended_by_signals():
        work()
    assert ended.value.signal is signal.SIGTERM
    assert steps == ["done"]
    assert capsys.readouterr().err == ""


def test_a_signal_after_one_that_python_drops_is_raised() -> None:
    def work() -> None:
        SignalledWhenDeleted()
        signal.raise_signal(signal.SIGHUP)

    with pytest.raises(EndedBySignal) as ended, ended_by_signals():
        work()
    assert ended.value.signal is signal.SIGHUP


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_was_blocked_before_is_raised_and_blocked_again_afterwards() -> None:
    # Raised in this thread: others, of pytest, were started before and would take it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(EndedBySignal), ended_by_signals():
            pass
        signal.raise_signal(signal.SIGTERM)
        assert signal.sigtimedwait([signal.SIGTERM], 0) is not None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_earlier_handlers_are_put_back() -> None:
    before = list(map(signal.getsignal, STOP_SIGNALS))
    with handling(lambda *_: None):
        assert before != list(map(signal.getsignal, STOP_SIGNALS))
    assert before == list(map(signal.getsignal, STOP_SIGNALS))


def test_a_blocked_interrupt_is_noticed_by_another_thread() -> None:
    """In a fork, which has no other threads that a signal could interrupt."""
    assert run_in_child(notice_interrupts, Fault("count", 0)).exception == ""


def notice_interrupts() -> None:
    """Notice them while the context lasts, or from before; afterwards they stay pending."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    ended, num_threads = threading.Event(), threading.active_count()
    with block_stop_signals():
        with ended_by_interrupt(ended.set):
            assert not ended.is_set()
            os.kill(os.getpid(), signal.SIGINT)
            assert ended.wait(WAIT_S)
        ended.clear()
        os.kill(os.getpid(), signal.SIGINT)
        with ended_by_interrupt(ended.set):
            assert ended.wait(WAIT_S)
        ended.clear()
        with ended_by_interrupt(ended.set):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert not ended.is_set()
        assert signal.sigpending() == {signal.SIGINT, signal.SIGTERM}
        for _ in range(2):
            signal.sigwait([signal.SIGINT, signal.SIGTERM])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert threading.active_count() == num_threads


def test_an_ignored_interrupt_ends_nothing() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with block_stop_signals(), ended_by_interrupt(pytest.fail):
        os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_a_signal_that_another_thread_takes_waits_where_this_one_blocks_it() -> None:
    """Threads of libraries do not block what this one does."""
    steps = []

    def work() -> None:
        with block_stop_signals():
            other = threading.Thread(target=take_a_signal)
            other.start()
            other.join()
            steps.append("whole")

    with pytest.raises(EndedBySignal) as ended, ended_by_signals():
        work()
    assert ended.value.signal is signal.SIGTERM
    assert steps == ["whole"]


def take_a_signal() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)


def test_nothing_is_requested_at_first_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as stop:
        assert not stop.is_requested
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_is_stored_and_gives_exit_code_75() -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_requested
    error = stop.error(12)
    assert isinstance(error, StoppedError)
    check_message(str(error), 75, "SIGTERM update 12; command")
    assert error.exit_code == 75


def test_sigint_is_stored_and_a_second_one_interrupts_immediately() -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert isinstance(stop.error(3), InterruptedByUserError)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_stop_before_the_first_update_claims_nothing_saved() -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
    assert str(stop.error(0)) == (
        "stopped by SIGTERM before its first update; run the same command again to continue"
    )


@pytest.mark.parametrize("later", STOP_SIGNALS)
def test_the_first_signal_is_reported(later: signal.Signals) -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        if later is not signal.SIGINT:
            os.kill(os.getpid(), later)
    assert "stopped by SIGINT " in str(stop.error(1))


def test_an_interrupt_after_another_ranks_is_the_first_here() -> None:
    with StopRequest() as stop:
        stop.note([float(number is signal.SIGINT) for number in STOP_SIGNALS])
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def hangups_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangups_ignored")
def test_under_nohup_a_hangup_is_ignored() -> None:
    with block_stop_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        assert next_request(0.01) is None
        with StopRequest() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_requested
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_blocked_signal_is_handled_later_or_taken(number: signal.Signals) -> None:
    # Raised in this thread: others, of pytest, were started before and would take it.
    with block_stop_signals():
        signal.raise_signal(number)
        with StopRequest() as stop:
            assert stop.is_requested
    with block_stop_signals():
        assert next_request(0.01) is None
        signal.raise_signal(number)
        assert next_request(0.01) is number
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
