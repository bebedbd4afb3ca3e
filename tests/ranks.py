"""Several ranks on this machine, as forks of the test: a launcher without its seconds."""

import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from nmtkit.errors import NmtkitError, ToldElsewhereError

TIMEOUT_S = 90
UNEXPECTED = 99
"""Exit code of a rank that ended with an error that is none of the toolkit's."""


@dataclass(frozen=True)
class RankEnd:
    """How a rank ended: its exit code (negative: the signal that killed it), and what it told."""

    exit_code: int
    told: str


def run_ranks(size: int, work: Callable[[int], None]) -> list[RankEnd]:
    """Run `work(rank)` in processes that can join each other; returns how each ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [_start(rank, size, port, work) for rank in range(size)]
    return [_wait(pid, pipe) for pid, pipe in children]


def _start(rank: int, size: int, port: int, work: Callable[[int], None]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        GLOO_SOCKET_IFNAME="lo",
    )
    code, told = 0, ""
    try:
        work(rank)
    except NmtkitError as error:
        code = error.exit_code
        told = "" if isinstance(error, ToldElsewhereError) else str(error)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        code = UNEXPECTED
    os.write(writing, told.encode())
    os._exit(code)


def _wait(pid: int, pipe: int) -> RankEnd:
    """Wait for a rank to end; one that does not is killed."""
    ready, _, _ = select.select([pipe], [], [], TIMEOUT_S)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(pipe, "rb") as stream:
        told = stream.read().decode()
    _, status = os.waitpid(pid, 0)
    return RankEnd(os.waitstatus_to_exitcode(status), told)
