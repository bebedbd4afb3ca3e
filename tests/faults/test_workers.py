"""Worker processes end with their command, even in the middle of an answer."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.launching import is_running

COMMAND = """
from nmtkit.runtime.workers import Worker, ended_early
from tests.faults.test_workers import answer_slowly

if __name__ == "__main__":
    worker = Worker(answer_slowly, ended_early("use less"))
    worker.send("a question")
    print(worker.receive(), flush=True)
    worker.receive()
"""
ANSWER_S = 600
DEADLINE_S = 60.0


def answer_slowly(connection: Connection) -> None:
    connection.recv()
    connection.send(os.getpid())
    time.sleep(ANSWER_S)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_all_processes_of_a_job_ends_a_worker_that_is_computing(
    number: signal.Signals, tmp_path: Path
) -> None:
    script = tmp_path / "command.py"
    script.write_text(COMMAND, encoding="ascii")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as command:
        assert command.stdout
        worker = int(command.stdout.readline())
        os.killpg(command.pid, number)
        assert command.wait() == -number
    deadline = time.monotonic() + DEADLINE_S
    try:
        while is_running(worker):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)
