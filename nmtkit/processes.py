"""Processes that take a share of a command's work.

Ctrl-C reaches every process of a terminal. These do not hear it: the command itself ends them, and
they end when it is gone.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any


def start_worker(target: Callable[..., None], arguments: tuple[Any, ...]) -> SpawnProcess:
    """Start a process that is deaf to SIGINT from its first instruction on.

    One that comes meanwhile interrupts this process when the other has been started.

    Args:
        target: what it runs; sent by name.
        arguments: what that is called with; sent to it.
    """
    # Spawned rather than forked: a fork would copy locks that the threads of this process hold.
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=target, args=arguments, daemon=True)
    # It would be started otherwise below, and have this thread hear again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()  # inherits what is blocked
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process
