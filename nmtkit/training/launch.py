"""The launcher of `--devices`: one process per device on this machine, without torchrun.

The launcher holds the store through which the ranks find each other, and forwards the signals that
request a stop. When a rank is lost, it ends the others and restarts all from the last checkpoint,
as long as restarts make progress.
"""

import math
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch.distributed import Store, TCPStore

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps
from nmtkit.errors import (
    ConfigError,
    InterruptedByUserError,
    LostRankError,
    NmtkitError,
    ResourceError,
    StoppedError,
)
from nmtkit.runtime.environment import LAUNCHER, is_launched, python_command
from nmtkit.signals import block_stop_signals, next_request
from nmtkit.storage.run_folder import RunFolder, is_run
from nmtkit.training.distributed import AGREED_EXIT_CODES, have_joined
from nmtkit.training.micro_batches import read_increases

MAX_STARTS_WITHOUT_PROGRESS = 3
"""Starts in a row without a new checkpoint or more micro-batches before the launcher gives up."""

STOP_TIMEOUT_S = 30.0
"""When a rank has failed, the others are asked to end, and killed after this time.

They may be saving.
"""

POLL_S = 0.1
"""Time between two checks of the ranks."""

LOOPBACK = "127.0.0.1"

Rank = subprocess.Popen[bytes]


def num_processes(recipe: TrainRecipe) -> int:
    """Return the number of processes to start on this machine; 1 = train in this process.

    Raises:
        ConfigError: the recipe asks for more GPUs than the machine has.
    """
    if is_launched():
        return 1
    wanted = recipe.ranks.devices
    num_gpus = torch.cuda.device_count() if recipe.runtime.device != "cpu" else 0
    if num_gpus and wanted > num_gpus:
        raise ConfigError(
            f"devices ({wanted}) are more than the {num_gpus} GPUs of this machine; use --devices "
            "auto, or --device cpu [ranks.devices]"
        )
    return wanted or max(num_gpus, 1)


def in_memory(recipe: TrainRecipe) -> str:
    """Return the path of a recipe in memory, for processes that this one starts.

    All ranks and restarts have the same recipe, even if --config is a pipe or a file that changes.
    """
    descriptor = os.memfd_create("recipe")  # until the process ends
    os.write(descriptor, dumps(recipe).encode())
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def launch(
    arguments: Sequence[str],
    processes: int,
    run_dir: Path,
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Run an nmtkit command in several ranks, and restart them if one is lost.

    Args:
        arguments: arguments of `nmtkit`, for each rank.
        processes: number of ranks.
        run_dir: the run's folder; a new checkpoint there is progress.
        report: prints a line.
        clock: seconds from an arbitrary start, never going back.

    Returns:
        The exit code; a rank has reported its reason.

    Raises:
        LostRankError: ranks are lost again and again, without progress in between.
        StoppedError, InterruptedByUserError, KeyboardInterrupt: see `_run`.
    """
    starts = 0
    with block_stop_signals():  # signals wait until a rank can handle them
        while True:
            last, increases = _last_checkpoint(run_dir), read_increases(RunFolder(run_dir))
            code, lost = _run(arguments, processes, clock)
            # Only more micro-batches help where memory is too small.
            is_split = read_increases(RunFolder(run_dir)) != increases
            if lost is None or (code == ResourceError.exit_code and not is_split):
                return code
            starts = 1 if is_split or _last_checkpoint(run_dir) != last else starts + 1
            if starts >= MAX_STARTS_WITHOUT_PROGRESS:
                raise LostRankError(
                    f"{lost}, in {starts} starts without a new checkpoint; its own messages are "
                    "above; if memory is short, give smaller --max-tokens or fewer --devices"
                )
            report(f"{lost}; starting all ranks again from the last checkpoint")


def _run(
    arguments: Sequence[str],
    processes: int,
    clock: Callable[[], float],
) -> tuple[int, str | None]:
    """Start all ranks and wait for them.

    Returns:
        The exit code; a description of the loss if a restart may help, else None.

    Raises:
        StoppedError, InterruptedByUserError: a signal requested a stop before a rank was started,
            or a rank was lost after that.
        KeyboardInterrupt: see `_wait`.
    """
    if early := next_request(timeout_s=0):
        raise _stopped(early, "before its processes were started")
    store = _loopback_store()
    ranks: list[Rank] = []
    try:
        for rank in range(processes):
            ranks += [_start(arguments, _environment(rank, processes, store.port))]
        failures, request = _wait(ranks, store, clock)
    finally:
        _signal(ranks, signal.SIGKILL)  # an error of the launcher may leave some running
    if not failures:
        return 0, None
    code, lost = _first_failure(failures)
    if request and lost:
        raise _stopped(request, f"and {lost}")
    return code, lost


def _stopped(request: signal.Signals, how: str) -> NmtkitError:
    kind = InterruptedByUserError if request is signal.SIGINT else StoppedError
    return kind(f"stopped by {request.name}, {how}; run the same command again to continue")


def _loopback_store() -> TCPStore:
    """Return a store that this process serves; other machines cannot reach it."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return TCPStore(
            LOOPBACK,
            server.getsockname()[1],
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=server.detach(),  # otherwise it listens on every interface
        )


def _environment(rank: int, processes: int, port: int) -> dict[str, str]:
    """Return the environment of a rank: torchrun's variables and defaults for one machine."""
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
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # rank 0 creates no store
    }
    return {**defaults, **os.environ, **settings}


def _start(arguments: Sequence[str], environment: Mapping[str, str]) -> Rank:
    """Start a rank in a new session, so that a terminal's signals reach only the launcher."""
    command = [*python_command("nmtkit_cli"), *arguments]
    return subprocess.Popen(command, env=environment, start_new_session=True)


def _wait(
    ranks: Sequence[Rank], store: Store, clock: Callable[[], float]
) -> tuple[dict[int, int], signal.Signals | None]:
    """Wait until all ranks have ended; forward stop signals to them.

    When one has failed, the others get SIGTERM, and SIGKILL after `STOP_TIMEOUT_S`.

    Args:
        ranks: their processes.
        store: the store of the ranks.
        clock: seconds from an arbitrary start, never going back.

    Returns:
        The exit codes of the ranks that failed, in the order in which they ended; the first stop
        signal.

    Raises:
        KeyboardInterrupt: a second SIGINT came before all ranks had joined; until then they wait
            for each other, no signal ends this wait, and there is nothing to save.
    """
    failures: dict[int, int] = {}
    first_request, deadline, is_interrupted = None, math.inf, False
    running = dict(enumerate(ranks))
    while running:
        request = next_request(timeout_s=POLL_S)
        if request:
            first_request = first_request or request
            _signal(running.values(), request)
            if request is signal.SIGINT:
                if is_interrupted and not have_joined(store, len(ranks)):
                    raise KeyboardInterrupt
                is_interrupted = True
        ended = {rank: code for rank, one in running.items() if (code := one.poll()) is not None}
        for rank in ended:
            del running[rank]
        # A rank that lost another is not the reason if another ended in the same interval.
        by_reason = sorted(ended, key=lambda rank: ended[rank] == LostRankError.exit_code)
        failures |= {rank: ended[rank] for rank in by_reason if ended[rank]}
        if failures and deadline == math.inf:
            deadline = clock() + STOP_TIMEOUT_S
            _signal(running.values(), signal.SIGTERM)
        elif clock() > deadline:
            _signal(running.values(), signal.SIGKILL)
    return failures, first_request or next_request(timeout_s=0)


def _signal(ranks: Iterable[Rank], number: signal.Signals) -> None:
    for rank in ranks:
        rank.send_signal(number)  # no effect on a rank that has ended


def _first_failure(failures: Mapping[int, int]) -> tuple[int, str | None]:
    """Find the rank that failed first.

    A rank that stopped on request is the reason only if no other failed.

    Args:
        failures: exit codes by rank, in the order in which the ranks ended.

    Returns:
        Its exit code; a description of the failure if a restart may help, else None.
    """
    first = min(failures, key=lambda rank: failures[rank] in AGREED_EXIT_CODES)
    code = failures[first]
    if code < 0:
        return LostRankError.exit_code, f"rank {first} was killed by {signal.Signals(-code).name}"
    can_restart = code in (LostRankError.exit_code, ResourceError.exit_code)
    return code, f"rank {first} ended with exit code {code}" if can_restart else None


def _last_checkpoint(run_dir: Path) -> Path | None:
    return RunFolder(run_dir).last() if is_run(run_dir) else None
