"""Starting one process a device on this machine: what torchrun does, with `--devices` alone.

PyTorch's elastic agent starts the ranks, watches them, and ends all when one has failed. Here it
gets a store on the loopback interface, hands on the signals that ask for a stop, and is run again
from the last checkpoint when a rank is lost, as long as every start gets further than the one
before. Ranks that were asked to stop take as long as they need: they may be saving.
"""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch._C._distributed_c10d import TCPStore
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousInfo, RendezvousStoreInfo
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

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

LOOPBACK = "127.0.0.1"


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
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # we tell
    starts = 0
    with _environment(processes), held_back():  # signals wait until a rank can note them
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


@contextmanager
def _environment(processes: int) -> Iterator[None]:
    """Set what the agent and the ranks find in their environment while the block lasts."""
    before = dict(os.environ)
    defaults = {
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // processes)),
    }
    settings = {
        LAUNCHER: str(os.getpid()),
        # None: handlers of the agent would end ranks that are saving, and undo what nohup does.
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "",
    }
    os.environ.update({**defaults, **before, **settings})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run(
    arguments: Sequence[str], processes: int, say: Callable[[str], None]
) -> tuple[int, str | None]:
    """Start all ranks and wait; returns the exit code, and what was lost if another start helps."""
    escaped = (argument.replace("$", "$$") for argument in arguments)  # it fills in $local_rank
    spec = WorkerSpec(
        role="rank",
        local_world_size=processes,
        rdzv_handler=_Loopback(),
        entrypoint=sys.executable,
        args=("-m", "nmtkit_cli", *escaped),
        max_restarts=0,
    )
    agent = _Agent(spec, DefaultLogsSpecs(log_dir=os.devnull))
    failures = agent.run().failures
    asked = agent.asked or next_request(timeout_s=0)
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


class _Loopback(StaticTCPRendezvous):
    """Where the ranks meet: a store of this process, which other machines cannot reach."""

    def __init__(self) -> None:
        with socket.create_server((LOOPBACK, 0)) as server:
            port = server.getsockname()[1]
            super().__init__(LOOPBACK, port, rank=0, world_size=1, run_id="nmtkit", timeout=0)
            self._server = TCPStore(
                LOOPBACK,
                port,
                is_master=True,
                wait_for_workers=False,
                master_listen_fd=server.detach(),  # else it would listen on every interface
            )

    def next_rendezvous(self) -> RendezvousInfo:
        place = RendezvousStoreInfo(self.master_addr, self.master_port)
        return RendezvousInfo(self._server, self.rank, self.world_size, place)


class _Agent(LocalElasticAgent):
    """PyTorch's agent, which also hands on to the ranks what asks for a stop.

    Attributes:
        asked: the signal that came first, if any did.
    """

    asked: signal.Signals | None = None

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        request = next_request(timeout_s=0)
        if request:
            self.asked = self.asked or request
            for rank in worker_group.workers:
                with suppress(ProcessLookupError):  # it has ended
                    os.kill(rank.id, request)
        result: RunResult = super()._monitor_workers(worker_group)
        return result


def _judge(failures: Mapping[int, ProcessFailure]) -> tuple[int, str | None]:
    """Return the exit code of the rank that failed first, and what happened if a start may help.

    Of several that failed at once, it is one that has not done so for the loss of others.
    """

    def order(rank: int) -> tuple[bool, int, bool]:
        code = failures[rank].exitcode
        return code in TOGETHER, failures[rank].timestamp, code == LostRankError.exit_code

    first = min(failures, key=order)
    code = failures[first].exitcode
    if code < 0:
        return LostRankError.exit_code, f"rank {first} was killed by {signal.Signals(-code).name}"
    is_worth_a_start = code in (LostRankError.exit_code, ResourceError.exit_code)
    return code, f"rank {first} ended with exit code {code}" if is_worth_a_start else None


def _last(run_dir: Path) -> Path | None:
    return RunFolder(run_dir).last() if is_run(run_dir) else None
