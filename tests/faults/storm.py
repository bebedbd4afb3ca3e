"""Kill training repeatedly at random moments, and compare the results with an undisturbed run.

    python -m tests.faults.storm --rounds 200
    python -m tests.faults.storm --rounds 60 --ranks 3

A round runs `train` in a fork of this process, which has already imported torch, or in one for each
rank, and sends SIGKILL to its process group after a random time. Rounds repeat the same call until
the run is complete. Then its result must equal that of an undisturbed run, and another run begins.
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
from tests.ranks import DONE, run_ranks
from tests.tiny import tiny_dataset, tiny_train_recipe

NUM_UPDATES = 24
KILLS_A_RUN = 8
"""About this number: a round lasts at most 2 / KILLS_A_RUN of an undisturbed run."""


@dataclass
class Tally:
    """Counts of a storm.

    Attributes:
        seed: of the random times.
        num_rounds: starts of training; each was killed or completed a run.
        num_kills: rounds that were killed.
        num_kills_in_a_write: kills that left a partial file.
        num_resumes: rounds that resumed from a checkpoint.
        num_runs_equal: completed runs; each equals the undisturbed one.
    """

    seed: int
    num_rounds: int = 0
    num_kills: int = 0
    num_kills_in_a_write: int = 0
    num_resumes: int = 0
    num_runs_equal: int = 0


def storm(num_rounds: int, seed: int, folder: Path, num_ranks: int = 1) -> Tally:
    """Kill training in `num_rounds` rounds, over several runs.

    Args:
        num_rounds: smallest number of rounds; the last run is always completed.
        seed: of the random time of each kill.
        folder: an empty folder.
        num_ranks: ranks that train together.

    Raises:
        AssertionError: a run differs from the undisturbed one; the message has the seed.
    """
    tally, generator = Tally(seed), random.Random(seed)
    data, log = tiny_dataset(folder), folder / "log"
    begin = time.monotonic()
    with log.open("a") as stream, redirect_stderr(stream):
        training(data, folder / "undisturbed", num_ranks)()
    longest_s = 2 * (time.monotonic() - begin) / KILLS_A_RUN
    expected = result_of(folder / "undisturbed")
    while tally.num_rounds < num_rounds:
        run = folder / f"run{tally.num_runs_equal}"
        is_complete = False
        while not is_complete:
            is_last = tally.num_rounds + 1 >= num_rounds
            lifetime_s = None if is_last else generator.uniform(0, longest_s)
            is_complete = _round(training(data, run, num_ranks), run, log, lifetime_s, tally)
        assert result_of(run) == expected, f"{run} of {tally}"
        tally.num_runs_equal += 1
    return tally


def training(data: Path, run: Path, num_ranks: int) -> Callable[[], None]:
    """Return the call to kill: every update has micro-batches and is saved, some are validated."""
    recipe = tiny_train_recipe(max_updates=NUM_UPDATES, dropout=0.1)
    recipe = replace(
        recipe,
        checkpoints=CheckpointConfig(save_every=1, keep=2),
        validation=replace(recipe.validation, validate_every=NUM_UPDATES // 4),
    )
    if num_ranks == 1:
        return lambda: train(recipe, data, run)

    def train_together() -> None:
        ends = run_ranks(num_ranks, lambda _: train(recipe, data, run))
        assert ends == [DONE] * num_ranks, ends

    return train_together


def _round(
    action: Callable[[], None], run: Path, log: Path, lifetime_s: float | None, tally: Tally
) -> bool:
    """Start training, kill it after a time (None = never); return whether it completed."""
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
    """Run a storm, and print its counts."""
    parser = argparse.ArgumentParser(description="Kill training at random moments.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    begin = time.monotonic()
    # Written data survives its process, synced or not.
    with tempfile.TemporaryDirectory() as folder, injected(Fault("count", 0), is_synced=False):
        tally = storm(arguments.rounds, arguments.seed, Path(folder), arguments.ranks)
    counts = " ".join(f"{name}={number}" for name, number in vars(tally).items())
    print(f"{counts} seconds={time.monotonic() - begin:.0f}")  # noqa: T201


if __name__ == "__main__":
    main()
