r"""What a whole run costs beyond its updates: time lost to saving, and memory that grows.

    python -m benchmarks.trainer --data DATASET --updates 2000

Trains with the preset small in updates of a few tokens, so that there are many of them, and says
which share of the time checkpoints took, per save and at the interval that was asked for, which
share reading batches took, and how much memory the second half of the run needed beyond the first.
Nothing is kept. What it takes to cut text anew in each update:

    python -m benchmarks.trainer --data DATASET --updates 60 --update-tokens 4096 \
      --subword-sampling both
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from nmtkit.training.reading import Reader
from nmtkit.training.saving import Saver
from nmtkit.training.shares import SlotIds

from benchmarks.common import print_json, print_table
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import Batch
from nmtkit.training.run import train
from nmtkit.training.state import RunState

LOG_EVERY = 50


def main() -> None:
    """Train, and tell what was beside the updates."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a dataset of nmtkit preprocess")
    parser.add_argument("--shape", choices=("small", "base", "big"), default="small")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--update-tokens", type=int, default=256)
    parser.add_argument("--save-every", type=int, default=1000)
    parser.add_argument("--subword-sampling", default="none")
    parser.add_argument("--read-workers", type=int, default=0)
    options = parser.parse_args()
    recipe = build(
        TrainRecipe,
        PRESETS[options.shape],
        {
            "update_tokens": options.update_tokens,
            "max_tokens": options.update_tokens,
            "max_updates": options.updates,
            "save_every": options.save_every,
            "validate_every": 0,
            "log_every": LOG_EVERY,
            "subword_sampling": options.subword_sampling,
            "read_workers": options.read_workers,
        },
    )
    saving, reading = _timed_saves(), _timed_reads()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        start = time.perf_counter()
        train(recipe, options.data, run)
        seconds = time.perf_counter() - start
        records = _records(run)
        size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    _tell(options, (saving, reading), seconds, records, size)


def _timed_saves() -> list[float]:
    """Have the time that training waits for each save noted."""
    seconds: list[float] = []
    save = Saver.save_if_due

    def save_timed(self: Saver, state: RunState) -> None:
        start = time.perf_counter()
        save(self, state)
        seconds.append(time.perf_counter() - start)

    Saver.save_if_due = save_timed  # type: ignore[method-assign]
    return seconds


def _timed_reads() -> list[float]:
    """Have the time that training waits for each batch noted."""
    seconds: list[float] = []
    take = Reader._take

    def take_timed(self: Reader) -> tuple[SlotIds, Batch]:
        start = time.perf_counter()
        taken = take(self)
        seconds.append(time.perf_counter() - start)
        return taken

    Reader._take = take_timed  # type: ignore[method-assign]
    return seconds


def _records(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _tell(
    options: argparse.Namespace,
    timed: tuple[list[float], list[float]],
    seconds: float,
    records: list[dict[str, Any]],
    size: int,
) -> None:
    saving, reading = timed
    half = len(records) // 2
    peaks = [record["peak_memory"] / 2**20 for record in records]
    figures = {
        "updates": options.updates,
        "seconds": round(seconds, 1),
        "updates_per_second": round(options.updates / records[-1]["elapsed_s"], 2),
        "longest_save_s": round(max(saving), 3),
        "share_of_time_in_saves": round(sum(saving) / seconds, 5),
        "share_of_time_in_reads": round(sum(reading) / records[-1]["elapsed_s"], 5),
        "peak_mib_first_half": round(peaks[half - 1]),
        "peak_mib_whole": round(peaks[-1]),
        "run_folder_mib": round(size / 2**20),
    }
    print_table([(name, str(value)) for name, value in figures.items()])
    print_json(figures)


if __name__ == "__main__":
    main()
