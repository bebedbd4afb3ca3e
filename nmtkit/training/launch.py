"""Starting one process a device on this machine: what torchrun does, with `--devices` alone.

PyTorch's elastic launcher starts the ranks, watches them, and ends all when one is lost. Here they
are started again from the last checkpoint, as long as every start gets further than the one before.
"""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from nmtkit.checkpoint import RunFolder, is_run
from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import (
    ConfigError,
    LostRankError,
    ResourceError,
)
from nmtkit.training.distributed import EXIT_CODE_PATH, is_launched
from nmtkit.training.pieces import FILE as PIECES
from nmtkit.training.stopping import StopRequest

MAX_STARTS_WITHOUT_PROGRESS = 3
"""So many starts in a row that save no new checkpoint are enough."""

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
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, torch.get_num_threads() // processes)))
    starts = 0
    while True:
        before, cuts = _last(run_dir), _cuts(run_dir)
        with tempfile.TemporaryDirectory() as folder:
            code, lost = _run(arguments, processes, Path(folder))
        if lost is None or (code == ResourceError.exit_code and _cuts(run_dir) == cuts):
            return code
        starts = 1 if _last(run_dir) != before else starts + 1
        if starts >= MAX_STARTS_WITHOUT_PROGRESS:
            say(f"nmtkit: error: {lost}, in {starts} starts without a new checkpoint")
            return code
        say(f"{lost}; starting all ranks again from the last checkpoint")


def _run(arguments: Sequence[str], processes: int, folder: Path) -> tuple[int, str | None]:
    """Start all ranks and wait; returns the exit code, and what was lost if another start helps."""
    exit_code_path = folder / "exit-code"
    os.environ[EXIT_CODE_PATH] = str(exit_code_path)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=str(os.getpid()),
        rdzv_backend="c10d",
        rdzv_endpoint=f"{LOOPBACK}:0",
        local_addr=LOOPBACK,
        max_restarts=0,
        signals_to_handle=",".join(kind.name for kind in StopRequest.SIGNALS),
        logs_specs=DefaultLogsSpecs(log_dir=str(folder)),  # else it stays in /tmp for ever
    )
    try:
        elastic_launch(config, sys.executable)("-m", "nmtkit_cli", *arguments)
    except SignalException:  # handed on to the ranks; those that took too long were killed
        if not exit_code_path.exists():
            return LostRankError.exit_code, None
        return int(exit_code_path.read_text(encoding="ascii")), None
    except ChildFailedError as failed:
        return _judge(failed)
    return 0, None


def _judge(failed: ChildFailedError) -> tuple[int, str | None]:
    """Return the exit code of the rank that failed first, and what happened if a start may help."""
    rank, failure = failed.get_first_failure()
    code = failure.exitcode
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
