"""Something done at a moment of training: before a call, or in an update."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nmtkit.training import trainer


def preceded(
    function: Callable[..., Any], do: Callable[[], object], fits: Callable[..., object]
) -> Callable[..., Any]:
    """Return a function before whose first call with fitting arguments something is done."""
    done: list[object] = []

    def call(*arguments: Any) -> Any:
        if not done and fits(*arguments):
            done.append(arguments)
            do()
        return function(*arguments)

    return call


@contextmanager
def in_update(number: int, do: Callable[[], object]) -> Iterator[None]:
    """Have something done when training within the block begins an update, the first time."""

    def is_it(_seed: int, update: int, _number: int, _initial: int) -> bool:
        return update == number

    with pytest.MonkeyPatch.context() as patched:
        seed = vars(trainer)["micro_batch_seed"]  # of an outer block, if there is one
        patched.setattr(trainer, "micro_batch_seed", preceded(seed, do, is_it))
        yield


def send(number: signal.Signals) -> Callable[[], None]:
    """Return what sends this process a signal, as others do, whichever thread it is called in."""
    return lambda: os.kill(os.getpid(), number)
