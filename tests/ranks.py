"""Several ranks on this machine, as forks of the test: faster than the launcher."""

import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import NmtkitError, ReportedElsewhereError
from nmtkit.training import trainer
from nmtkit.training.checkpointing import Saver
from nmtkit.training.initialization import Parent
from nmtkit.training.micro_batches import micro_batch_seed
from nmtkit.training.run import train
from tests.faults.harness import fork
from tests.tiny import tiny_train_recipe

TIMEOUT_S = 90
UNEXPECTED = 99
"""Exit code of a rank that ended with an error that is no NmtkitError."""


@dataclass(frozen=True)
class RankEnd:
    """Exit code of a rank (negative: the signal that killed it), and the error message."""

    exit_code: int
    message: str


NUM_UPDATES = 20
DONE = RankEnd(0, "")
Hook = Callable[[int, int], None]
"""Called with (rank, update) before each micro-batch."""


def stop_after_saving() -> None:
    """Have this process request its own stop after each save."""
    save = Saver.save_now

    def save_and_stop(self: Saver) -> None:
        save(self)
        signal.raise_signal(signal.SIGTERM)

    Saver.save_now = save_and_stop  # type: ignore[method-assign]


def run_ranks(size: int, work: Callable[[int], None]) -> list[RankEnd]:
    """Run `work(rank)` in processes that can join each other; returns how each ended."""
    with socket.socket() as reserved:
        # Bound to the end, so that nobody else gets the port; rank 0 may listen on it all the same.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        children = [_start(rank, size, port, work) for rank in range(size)]
        return [_wait(pid, pipe) for pid, pipe in children]


def from_launcher(**variables: str) -> dict[str, str]:
    """Return the environment variables of a process that a launcher started as a rank."""
    given = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    return {**given, **variables}


def _start(rank: int, size: int, port: int, work: Callable[[int], None]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = fork()
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
    code, message = 0, ""
    try:
        work(rank)
    except NmtkitError as error:
        code = error.exit_code
        message = "" if isinstance(error, ReportedElsewhereError) else str(error)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        code = UNEXPECTED
    os.write(writing, message.encode())
    os._exit(code)


def _wait(pid: int, pipe: int) -> RankEnd:
    """Wait for a rank to end; one that does not is killed."""
    ready, _, _ = select.select([pipe], [], [], TIMEOUT_S)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(pipe, "rb") as stream:
        message = stream.read().decode()
    _, status = os.waitpid(pid, 0)
    return RankEnd(os.waitstatus_to_exitcode(status), message)


def recipe_of(dropout: float, micro_batches: int, max_updates: int = NUM_UPDATES) -> TrainRecipe:
    """Return a recipe with a few pairs per update and a save every five updates.

    The loss does not depend on the biases of keys, so that their gradients are rounding alone,
    which Adam makes as large as any other: the smaller the learning rate, the less of it is seen.
    """
    recipe = tiny_train_recipe(max_updates=max_updates, dropout=dropout)
    training = replace(recipe.training, update_tokens=24, max_tokens=24 // micro_batches)
    return replace(
        recipe,
        training=replace(training, learning_rate_scale=0.03),
        checkpoints=replace(recipe.checkpoints, save_every=5),
        validation=replace(recipe.validation, validate_every=10, validate_samples=2),
    )


def train_on(
    size: int,
    recipe: TrainRecipe,
    data: Path,
    run: Path,
    dtype: torch.dtype = torch.float64,
    hook: Hook | None = None,
    parent: Parent | None = None,
) -> list[RankEnd]:
    """Train with `size` processes; return how each ended."""

    def work(rank: int) -> None:
        def seed(seed: int, update: int, number: int, initial: int) -> int:
            if hook is not None:
                hook(rank, update)
            return micro_batch_seed(seed, update, number, initial)

        vars(trainer)["micro_batch_seed"] = seed
        torch.set_default_dtype(dtype)
        train(recipe, data, run, parent=parent)

    return run_ranks(size, work)


def once(hook: Hook) -> Hook:
    """Return a hook that is called once per rank and update, not per micro-batch."""
    seen: set[tuple[int, int]] = set()

    def call(rank: int, update: int) -> None:
        if (rank, update) not in seen:
            seen.add((rank, update))
            hook(rank, update)

    return call
