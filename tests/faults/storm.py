"""Kills training again and again, at random moments, and looks what it comes to in the end.

    python -m tests.faults.storm --rounds 200

A round runs `train` in a fork of this process, which has imported torch already, and sends SIGKILL
to its process group after a random time. The next round is the same call, until the run is
complete; then it must have come to the same as one that nothing disturbed, and another run begins.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path

from nmtkit.config.training import CheckpointConfig
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.run import train
from tests.faults.harness import Fault, injected, start, wait
from tests.faults.results import result_of
from tests.tiny import tiny_dataset, tiny_train_recipe

NUM_UPDATES = 24
KILLS_A_RUN = 8
"""About so many: the longest time of a round is that share of an undisturbed run, twice."""


@dataclass
class Tally:
    """What a storm has done.

    Attributes:
        seed: what its times were drawn from.
        num_rounds: starts of training, each of which was killed or completed a run.
        num_kills: rounds that were killed.
        num_kills_in_a_write: those that left something half written.
        num_resumes: rounds that found a checkpoint to go on from.
        num_runs_equal: runs that were completed, and equal to the undisturbed one.
    """

    seed: int
    num_rounds: int = 0
    num_kills: int = 0
    num_kills_in_a_write: int = 0
    num_resumes: int = 0
    num_runs_equal: int = 0


def storm(num_rounds: int, seed: int, folder: Path) -> Tally:
    """Kill training in so many rounds, spread over as many runs as it takes.

    Args:
        num_rounds: how many at least; the last run is completed in any case.
        seed: what the time of each kill is drawn from.
        folder: an empty one.

    Raises:
        AssertionError: a run ended otherwise than an undisturbed one; tells the seed.
    """
    tally, generator = Tally(seed), random.Random(seed)
    data, log = tiny_dataset(folder), folder / "log"
    begin = time.monotonic()
    with log.open("a") as stream, redirect_stderr(stream):
        training(data, folder / "undisturbed")()
    longest_s = 2 * (time.monotonic() - begin) / KILLS_A_RUN
    expected = result_of(folder / "undisturbed")
    while tally.num_rounds < num_rounds:
        run = folder / f"run{tally.num_runs_equal}"
        is_complete = False
        while not is_complete:
            is_last = tally.num_rounds + 1 >= num_rounds
            lifetime_s = None if is_last else generator.uniform(0, longest_s)
            is_complete = _round(training(data, run), run, log, lifetime_s, tally)
        assert result_of(run) == expected, f"{run} of {tally}"
        tally.num_runs_equal += 1
    return tally


def training(data: Path, run: Path) -> Callable[[], None]:
    """Return the call that is killed: micro-batches in each update, each saved, some validated."""
    recipe = tiny_train_recipe(max_updates=NUM_UPDATES, dropout=0.1)
    recipe = replace(
        recipe,
        checkpoints=CheckpointConfig(save_every=1, keep=2),
        validation=replace(recipe.validation, validate_every=NUM_UPDATES // 4),
    )
    return lambda: train(recipe, data, run)


def _round(
    action: Callable[[], None], run: Path, log: Path, lifetime_s: float | None, tally: Tally
) -> bool:
    """Start training, and kill it after a time unless that is None; returns if it ended well."""
    tally.num_rounds += 1
    tally.num_resumes += RunFolder(run).last() is not None
    child = start(action, log)
    if lifetime_s is not None:
        time.sleep(lifetime_s)
        os.killpg(child, signal.SIGKILL)
    code = wait(child)
    assert code in (0, -signal.SIGKILL), f"{log.read_text()}\nexit code {code} in {tally}"
    tally.num_kills += code != 0
    tally.num_kills_in_a_write += any(run.rglob(".*.nmtkit-*"))
    return code == 0


def main() -> None:
    """Run a storm as long as asked for, and tell what it did."""
    parser = argparse.ArgumentParser(description="Kill training at random moments.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    begin = time.monotonic()
    # What was written survives the process that wrote it, synced or not.
    with tempfile.TemporaryDirectory() as folder, injected(Fault("count", 0), is_synced=False):
        tally = storm(arguments.rounds, arguments.seed, Path(folder))
    told = " ".join(f"{name}={number}" for name, number in vars(tally).items())
    print(f"{told} seconds={time.monotonic() - begin:.0f}")  # noqa: T201


if __name__ == "__main__":
    main()
