"""Start one process per device on this machine: what torchrun does, with `--devices` alone.

The launcher keeps the store through which the ranks find each other, and forwards the signals that
ask for a stop. When a rank is lost, it ends the others and starts all again from the last
checkpoint, as long as every start gets further than the one before.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch.distributed import TCPStore

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import (
    ConfigError,
    InterruptedByUserError,
    LostRankError,
    ResourceError,
    StoppedError,
)
from nmtkit.storage.run_folder import RunFolder, is_run
from nmtkit.training.distributed import LAUNCHER, TOGETHER, is_launched
from nmtkit.training.micro_batches import recorded_increases
from nmtkit.training.stopping import held_back, next_request

MAX_STARTS_WITHOUT_PROGRESS = 3
"""Ranks are not started again after this many starts without a checkpoint or more micro-batches."""

PATIENCE_S = 30.0
"""When a rank has failed, the others are killed after this time: they may be saving."""

POLL_S = 0.1
"""Time between two looks at the ranks."""

LOOPBACK = "127.0.0.1"

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
    """Run an nmtkit command in several ranks, and again if one is lost.

    Args:
        arguments: of the command, as they were typed.
        processes: number of ranks.
        run_dir: the run's folder, whose checkpoints show progress.
        say: takes a line of talk.

    Returns:
        The exit code; its reason has been reported.
    """
    starts = 0
    with held_back():  # signals wait until a rank can note them
        while True:
            last, increases = _last(run_dir), recorded_increases(RunFolder(run_dir))
            code, lost = _run(arguments, processes, say)
            # More micro-batches are the one remedy for too little memory.
            is_split = recorded_increases(RunFolder(run_dir)) != increases
            if lost is None or (code == ResourceError.exit_code and not is_split):
                return code
            starts = 1 if is_split or _last(run_dir) != last else starts + 1
            if starts >= MAX_STARTS_WITHOUT_PROGRESS:
                say(f"nmtkit: error: {lost}, in {starts} starts without a new checkpoint")
                return code
            say(f"{lost}; starting all ranks again from the last checkpoint")


def _run(
    arguments: Sequence[str], processes: int, say: Callable[[str], None]
) -> tuple[int, str | None]:
    """Start all ranks and wait; returns the exit code, and what was lost if another start helps."""
    store = _loopback_store()
    ranks: list[Rank] = []
    try:
        for rank in range(processes):
            ranks += [_start(arguments, _environment(rank, processes, store.port))]
        failures, asked = _wait(ranks)
    finally:
        _signal(ranks, signal.SIGKILL)  # those that an error of the launcher leaves
    if not failures:
        return 0, None
    code, lost = _judge(failures)
    if asked and lost:
        say(
            f"nmtkit: error: stopped by {asked.name}, and {lost}; run the same command again to "
            "continue"
        )
        kind = InterruptedByUserError if asked is signal.SIGINT else StoppedError
        return kind.exit_code, None
    return code, lost


def _loopback_store() -> TCPStore:
    """Return a store that this process keeps; other machines cannot reach it."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return TCPStore(
            LOOPBACK,
            server.getsockname()[1],
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=server.detach(),  # else it would listen on every interface
        )


def _environment(rank: int, processes: int, port: int) -> dict[str, str]:
    """Return the environment of a rank: torchrun's variables, and defaults for one machine."""
    defaults = {
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // processes)),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }
    settings = {
        LAUNCHER: str(os.getpid()),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # rank 0 makes none of its own
    }
    return {**defaults, **os.environ, **settings}


def _start(arguments: Sequence[str], environment: Mapping[str, str]) -> Rank:
    """Start a rank in a session of its own: what a terminal sends reaches the launcher alone."""
    command = [sys.executable, "-m", "nmtkit_cli", *arguments]
    return subprocess.Popen(command, env=environment, start_new_session=True)


def _wait(ranks: Sequence[Rank]) -> tuple[dict[int, int], signal.Signals | None]:
    """Wait until all ranks have ended, and forward to them what asks for a stop.

    Once one has failed, the others are asked to end, and are killed after `PATIENCE_S`.

    Returns:
        The exit codes of the ranks that failed, in the order of their ends; the first request.
    """
    failures: dict[int, int] = {}
    asked, deadline = None, math.inf
    running = dict(enumerate(ranks))
    while running:
        request = next_request(timeout_s=POLL_S)
        if request:
            asked = asked or request
            _signal(running.values(), request)
        ended = {rank: code for rank, one in running.items() if (code := one.poll()) is not None}
        for rank in ended:
            del running[rank]
        # Of ranks that ended together, one that lost another is not the reason.
        by_reason = sorted(ended, key=lambda rank: ended[rank] == LostRankError.exit_code)
        failures |= {rank: ended[rank] for rank in by_reason if ended[rank]}
        if failures and deadline == math.inf:
            deadline = time.monotonic() + PATIENCE_S
            _signal(running.values(), signal.SIGTERM)
        elif time.monotonic() > deadline:
            _signal(running.values(), signal.SIGKILL)
    return failures, asked or next_request(timeout_s=0)


def _signal(ranks: Iterable[Rank], number: signal.Signals) -> None:
    for rank in ranks:
        rank.send_signal(number)  # does nothing to one that has ended


def _judge(failures: Mapping[int, int]) -> tuple[int, str | None]:
    """Return the exit code of the rank that failed first, and what happened if a start may help.

    A rank that ended as all have agreed to is the reason only where no other failed.

    Args:
        failures: exit codes by rank, in the order of their ends.
    """
    first = min(failures, key=lambda rank: failures[rank] in TOGETHER)
    code = failures[first]
    if code < 0:
        return LostRankError.exit_code, f"rank {first} was killed by {signal.Signals(-code).name}"
    is_worth_a_start = code in (LostRankError.exit_code, ResourceError.exit_code)
    return code, f"rank {first} ended with exit code {code}" if is_worth_a_start else None


def _last(run_dir: Path) -> Path | None:
    return RunFolder(run_dir).last() if is_run(run_dir) else None
