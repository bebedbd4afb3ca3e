import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from nmtkit.errors import DamagedError, ResourceError
from nmtkit.runtime.workers import Worker, _start, ended_early
from nmtkit.signals import STOP_SIGNALS
from tests.messages import refuses

pytestmark = pytest.mark.sampled(every=3)

DEADLINE_S = 60
DO_WITHOUT = ended_early("do without")


@pytest.fixture(autouse=True, scope="module")
def _workers_are_forks() -> None:
    """Have workers spawned, as they are outside of tests."""


def interrupt_own_process(connection: Connection) -> None:
    """Send whether a SIGINT to this process stays pending."""
    os.kill(os.getpid(), signal.SIGINT)
    connection.send(signal.SIGINT in signal.sigpending())
    connection.recv()


def test_an_interrupt_reaches_the_parent_and_not_the_worker() -> None:
    own, other = multiprocessing.Pipe()
    process = _start(interrupt_own_process, other)
    assert own.poll(DEADLINE_S)
    assert own.recv() is True
    assert process.is_alive()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    own.send(None)
    process.join(DEADLINE_S)
    assert process.exitcode == 0


def test_an_interrupt_that_comes_while_a_worker_is_started_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, other = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    start = context.Process.start

    def interrupted_start(process: multiprocessing.process.BaseProcess) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        start(process)

    monkeypatch.setattr(context.Process, "start", interrupted_start)
    with pytest.raises(KeyboardInterrupt):
        _start(interrupt_own_process, other)
    assert own.poll(DEADLINE_S)
    assert own.recv() is True
    own.send(None)


def signal_own_process(connection: Connection) -> None:
    """Raise the received signals in this process; send the pending ones after each."""
    while True:
        number = connection.recv()
        os.kill(os.getpid(), number)
        connection.send(sorted(signal.sigpending()))


def test_a_worker_ignores_stop_signals_and_can_be_ended() -> None:
    worker: Worker[list[int]] = Worker(signal_own_process, DO_WITHOUT)
    received = []
    for number in STOP_SIGNALS:
        worker.send(number)
        received = worker.receive()
    assert received == sorted(STOP_SIGNALS)
    worker.end()
    assert not multiprocessing.active_children()


def test_the_death_of_a_worker_is_an_error_with_a_remedy() -> None:
    worker: Worker[list[int]] = Worker(signal_own_process, ended_early("take fewer of them"))
    worker.send(signal.SIGKILL)
    for _ in range(2):
        with refuses(ResourceError, "worker process -9; memory"):
            worker.receive()
        worker.send(0)
    worker.end()


AT_EXIT = """
import signal
from nmtkit.signals import STOP_SIGNALS
from nmtkit.runtime.workers import Worker
from tests.unit.runtime.test_workers import DO_WITHOUT, signal_own_process

if __name__ == "__main__":
    worker = Worker(signal_own_process, DO_WITHOUT)
    worker.send(signal.SIGTERM)
    print(worker.receive() == [signal.SIGTERM])
"""


def test_a_command_that_ends_without_ending_its_worker_does_not_wait_for_it(
    tmp_path: Path,
) -> None:
    script = tmp_path / "command.py"
    script.write_text(AT_EXIT, encoding="ascii")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def raise_what_comes(connection: Connection) -> None:
    raise connection.recv()


@pytest.mark.parametrize(
    "error",
    [
        DamagedError("ids: damaged"),
        OSError(errno.EMFILE, "Too many open files", "ids"),
    ],
)
def test_an_error_of_a_worker_is_raised_at_receive(error: Exception) -> None:
    worker: Worker[None] = Worker(raise_what_comes, DO_WITHOUT)
    worker.send(error)
    worker.send("more, which it does not wait for")
    with pytest.raises(type(error)) as raised:
        worker.receive()
    assert str(raised.value) == str(error)
    worker.end()


def count_on(connection: Connection) -> None:
    number = 0
    while True:
        connection.send(number)
        number += 1


@pytest.mark.parametrize("serve", [count_on, raise_what_comes])
def test_a_worker_without_a_receiver_ends_silently(
    serve: Callable[[Connection], None], capfd: pytest.CaptureFixture[str]
) -> None:
    worker: Worker[int] = Worker(serve, DO_WITHOUT)
    (process,) = multiprocessing.active_children()
    worker.connection.close()
    process.join(DEADLINE_S)
    assert process.exitcode == 0
    assert capfd.readouterr() == ("", "")
