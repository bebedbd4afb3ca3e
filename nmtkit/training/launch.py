"""Starting one process a device on this machine: what torchrun does, with `--devices` alone.

The launcher keeps the store through which the ranks find each other, hands on the signals that ask
for a stop, and starts all ranks again from the last checkpoint when one is lost, as long as every
start gets further than the one before. It waits for ranks that were asked to stop as long as they
take: they may be saving.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch._C._distributed_c10d import TCPStore

from nmtkit.checkpoint import RunFolder, is_run
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import (
    ConfigError,
    InterruptedByUserError,
    LostRankError,
    ResourceError,
    StoppedError,
)
from nmtkit.training.distributed import LAUNCHER, is_launched
from nmtkit.training.pieces import FILE as PIECES
from nmtkit.training.stopping import held_back, next_request

MAX_STARTS_WITHOUT_PROGRESS = 3
"""So many starts in a row without a new checkpoint or finer cuts are enough."""

LOOPBACK = "127.0.0.1"

POLL_S = 0.1

GRACE_S = 30.0
"""When a rank has failed, one that has not ended by itself after this time is killed."""

ORDERLY = (0, StoppedError.exit_code, InterruptedByUserError.exit_code)
"""Exit codes with which ranks end together."""

Rank = subprocess.Popen[bytes]


def num_processes(recipe: TrainRecipe) -> int:
    """Return how many processes to start on this machine; 1 = this one is to train.

    Raises:
        ConfigError: more GPUs are asked for than there are.
    """
    if is_launched():
        return 1
    wanted = recipe.ranks.devices
    num_gpus = torch.cuda.device_count() if recipe.runtime.device != "cpu" else 0
    if num_gpus and wanted > num_gpus:
        raise ConfigError(
            f"devices ({wanted}) are more than the {num_gpus} GPUs of this machine; take --devices "
            "auto, or --device cpu [ranks.devices]"
        )
    return wanted or max(num_gpus, 1)


def launch(
    arguments: Sequence[str], processes: int, run_dir: Path, say: Callable[[str], None]
) -> int:
    """Run an nmtkit command as so many ranks, and again if one is lost.

    Args:
        arguments: of the command, as they were typed.
        processes: how many ranks.
        run_dir: the run's folder, whose checkpoints show progress.
        say: takes a line of talk.

    Returns:
        The exit code; whatever it means has been told.
    """
    starts = 0
    with held_back():  # for the ranks too, until they can note it
        while True:
            last, cuts = _last(run_dir), _cuts(run_dir)
            code, lost = _run(arguments, processes, say)
            is_cut = _cuts(run_dir) != cuts
            if lost is None or (code == ResourceError.exit_code and not is_cut):
                return code
            starts = 1 if is_cut or _last(run_dir) != last else starts + 1
            if starts >= MAX_STARTS_WITHOUT_PROGRESS:
                say(f"nmtkit: error: {lost}, in {starts} starts without a new checkpoint")
                return code
            say(f"{lost}; starting all ranks again from the last checkpoint")


def _run(
    arguments: Sequence[str], processes: int, say: Callable[[str], None]
) -> tuple[int, str | None]:
    """Start all ranks and wait; returns the exit code, and what was lost if another start helps."""
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        store = TCPStore(
            LOOPBACK,
            port,
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=server.detach(),  # else it would listen on every interface
        )
    ranks = [_start(arguments, rank, processes, port) for rank in range(processes)]
    failed, asked = _watch(ranks)
    del store  # which served until now
    if failed is None:
        return ranks[0].returncode, None
    code, lost = _judge(failed, ranks[failed].returncode)
    if asked and lost:
        say(
            f"nmtkit: error: stopped by {asked.name}, and {lost}; run the same command again to "
            "continue"
        )
        kind = InterruptedByUserError if asked is signal.SIGINT else StoppedError
        return kind.exit_code, None
    return code, lost


def _start(arguments: Sequence[str], rank: int, processes: int, port: int) -> Rank:
    """Start a rank, which ends with this process, in a session that no terminal can interrupt."""
    defaults = {
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // processes)),
    }
    place = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": str(True),  # the store is there; rank 0 makes none
        LAUNCHER: str(os.getpid()),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "nmtkit_cli", *arguments],
        env={**defaults, **os.environ, **place},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def _watch(ranks: Sequence[Rank]) -> tuple[int | None, signal.Signals | None]:
    """Wait until all ranks have ended, and hand on what asks for a stop.

    Returns:
        Which rank failed first, and which signal came first; None for neither.
    """
    failed, asked, deadline = None, None, math.inf
    while any(rank.poll() is None for rank in ranks):
        request = next_request(POLL_S)
        if request:
            asked = asked or request
            _send(request, ranks)
        if failed is None and (failed := _first_failed(ranks)) is not None:
            deadline = time.monotonic() + GRACE_S
            _send(signal.SIGTERM, ranks)
        if time.monotonic() > deadline:
            _send(signal.SIGKILL, ranks)
    return (_first_failed(ranks) if failed is None else failed), asked


def _send(number: signal.Signals, ranks: Sequence[Rank]) -> None:
    for rank in ranks:
        rank.send_signal(number)  # does nothing where it has ended


def _first_failed(ranks: Sequence[Rank]) -> int | None:
    """Return a rank that has failed; of several one that has not done so for the loss of others."""
    codes = {number: rank.poll() for number, rank in enumerate(ranks)}
    failed = {number: code for number, code in codes.items() if code and code not in ORDERLY}
    return min(failed, key=lambda rank: failed[rank] == LostRankError.exit_code, default=None)


def _judge(rank: int, code: int) -> tuple[int, str | None]:
    """Return the exit code of a rank that failed, and what happened if another start may help."""
    if code < 0:
        return LostRankError.exit_code, f"rank {rank} was killed by {signal.Signals(-code).name}"
    is_worth_a_start = code in (LostRankError.exit_code, ResourceError.exit_code)
    return code, f"rank {rank} ended with exit code {code}" if is_worth_a_start else None


def _last(run_dir: Path) -> Path | None:
    return RunFolder(run_dir).last() if is_run(run_dir) else None


def _cuts(run_dir: Path) -> bytes:
    """Return what the run notes of finer cuts, which are the one cure for want of memory."""
    path = run_dir / PIECES
    return path.read_bytes() if path.exists() else b""
