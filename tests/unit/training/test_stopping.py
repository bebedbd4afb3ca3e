"""Signals are noted, reported with their exit code, and leave earlier handlers in place."""

import os
import signal

import pytest

from nmtkit.errors import InterruptedByUserError, StoppedError
from nmtkit.training.stopping import StopRequest


def test_nothing_is_requested_at_first_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as stop:
        assert not stop.is_requested
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_is_noted_and_becomes_exit_code_75() -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_requested
    error = stop.error(12)
    assert isinstance(error, StoppedError)
    assert error.exit_code == 75
    assert str(error) == (
        "stopped by SIGTERM after update 12, which is saved; run the same command again to continue"
    )


def test_sigint_is_noted_and_a_second_one_interrupts_at_once() -> None:
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
