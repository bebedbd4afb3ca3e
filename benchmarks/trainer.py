r"""Effect of saving and validating on the speed and memory of a whole run.

    python -m benchmarks.trainer --data DATASET --config RECIPE.toml

Trains a recipe twice, each time in a new process: without saves and validations before the end, and
with them. The speeds in the table leave out the saves and validations themselves, so both runs
should be equally fast. Without --config the preset small is trained.
"""

import argparse
import math
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.common import print_json, print_table
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe, Values
from nmtkit.config.toml import build, read_values
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import TrainingRecord, ValidationRecord
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.checkpointing import Saver
from nmtkit.training.run import train

INTERVAL = 100
"""Updates per row of the table."""

MIN_RATIO = 0.97
MIB = 2**20


@dataclass(frozen=True)
class Run:
    """The measurements of a run.

    Attributes:
        updates: the records of its updates, oldest first.
        validation_s: seconds in validations.
        longest_save_s: the longest time that training waited for a save, before the run's end.
    """

    updates: list[TrainingRecord]
    validation_s: float
    longest_save_s: float

    def tokens_per_second(self, after: int, up_to: int) -> float:
        """Return source and target tokens per second of the updates after `after`."""
        counted = [one for one in self.updates if after < one.update <= up_to]
        tokens = [one.num_source_tokens + one.num_target_tokens for one in counted]
        rates = [one.tokens_per_second for one in counted]
        return sum(tokens) / sum(n / rate for n, rate in zip(tokens, rates, strict=True))

    @property
    def peaks_mib(self) -> tuple[float, float]:
        """Peak memory of the first half of the run, and of the whole run."""
        first_half, whole = self.updates[(len(self.updates) - 1) // 2], self.updates[-1]
        return first_half.peak_memory / MIB, whole.peak_memory / MIB


def main() -> None:
    """Train twice; print a table and JSON."""
    options = read_options()
    updates, save_every = options.updates, options.save_every
    with tempfile.TemporaryDirectory() as folder:
        plain = run(options, updates, updates, Path(folder) / "plain")
        saving = run(options, save_every, options.validate_every, Path(folder) / "saving")
    speeds = [
        (last, *(one.tokens_per_second(first, last) for one in (plain, saving)))
        for first, last in intervals_of(updates)
    ]
    ratio = ratio_after(save_every, plain, saving)
    rows = [(f"to {last}", f"{a:.0f}", f"{b:.0f}", f"{b / a:.3f}") for last, a, b in speeds]
    print_table([("updates", "tokens/s without saves", "with saves", "ratio"), *rows])
    figures = {
        "speed with / without, after the first save": round(ratio, 3),
        "longest save, s": round(saving.longest_save_s, 3),
        "validations, s": round(saving.validation_s, 1),
        "peak MiB, first half": round(saving.peaks_mib[0]),
        "peak MiB, whole run": round(saving.peaks_mib[1]),
    }
    print_table([(name, str(value)) for name, value in figures.items()])
    print_json({**figures, "tokens/s to update, without, with": speeds})
    if options.check and ratio < MIN_RATIO:
        sys.exit(1)


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a dataset of nmtkit preprocess")
    parser.add_argument("--config", type=Path, help="a recipe of nmtkit train")
    parser.add_argument("--updates", type=int, default=600, help="updates of each run")
    parser.add_argument("--save-every", type=int, default=100, help="updates")
    parser.add_argument("--validate-every", type=int, default=200, help="updates")
    parser.add_argument(
        "--check", action="store_true", help=f"exit with 1 if the ratio is below {MIN_RATIO}"
    )
    options = parser.parse_args()
    if not 0 < options.save_every < options.updates:
        parser.error("--save-every must be at least 1 and less than --updates")
    return options


def run(options: argparse.Namespace, save_every: int, validate_every: int, folder: Path) -> Run:
    """Train in a new process, with saves and validations at these intervals."""
    own: Values = {
        "max_updates": options.updates,
        "max_epochs": 0,
        "max_minutes": 0,
        "patience": 0,
        "log_every": math.gcd(INTERVAL, options.save_every),
        "save_every": save_every,
        "save_minutes": 0,
        "validate_every": validate_every,
    }
    values = read(options.config) if options.config else PRESETS["small"]
    recipe = build(TrainRecipe, values, own)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(train_timed, recipe, options.data, folder).result()


def read(config: Path) -> Values:
    """Return the values that a recipe's file sets."""
    return read_values(config.read_text(encoding="utf-8"), TrainRecipe, str(config))


def train_timed(recipe: TrainRecipe, data: Path, folder: Path) -> Run:
    """Train, and time how long each save makes training wait."""
    pauses: list[float] = []
    save_if_due = Saver.save_if_due

    def timed(self: Saver) -> None:
        start = time.perf_counter()
        save_if_due(self)
        pauses.append(time.perf_counter() - start)

    Saver.save_if_due = timed  # type: ignore[method-assign]
    train(recipe, data, folder)
    records = list(MetricsLog(RunFolder(folder).metrics_path).records())
    return Run(
        updates=[one for one in records if isinstance(one, TrainingRecord)],
        validation_s=sum(one.took_s for one in records if isinstance(one, ValidationRecord)),
        longest_save_s=max(pauses),
    )


def ratio_after(first_save: int, plain: Run, saving: Run) -> float:
    """Return the speed with saves divided by that without, for the updates after the first save."""
    last = plain.updates[-1].update
    with_saves, without = (one.tokens_per_second(first_save, last) for one in (saving, plain))
    return with_saves / without


def intervals_of(updates: int) -> list[tuple[int, int]]:
    """Split updates into intervals (after, up to)."""
    return [(first, min(first + INTERVAL, updates)) for first in range(0, updates, INTERVAL)]


if __name__ == "__main__":
    main()
