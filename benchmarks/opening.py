"""Time and memory of a rank that opens a dataset and plans its epochs, by size of the dataset.

    python -m benchmarks.opening DATASET --shards 138 3815

All shards of the measured dataset are hard links to the first shard of DATASET, so nothing is read
from the disk; 138 full shards are 36 million pairs, 3815 are 10^9. A separate process runs the
steps of a rank before its first update, and some later ones. Peaks include the mapped pages of the
dataset.
"""

import argparse
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from benchmarks.common import MIB, print_json, print_table
from nmtkit.data.binary import FORMAT, TRAIN, VERSION, Contents, Dataset, shard_name
from nmtkit.data.sampler import Position, Sampler, check_budget
from nmtkit.storage.durable import read_manifest
from nmtkit.storage.json_data import decode
from nmtkit.storage.manifest import MANIFEST

UPDATE_TOKENS = 25_000
FRACTION = 0.5


@dataclass(frozen=True)
class Step:
    """The cost of a step of a rank.

    Attributes:
        pairs: number of pairs of the dataset.
        name: name of the step.
        seconds: its time.
        peak: peak memory of the process so far, in MiB.
    """

    pairs: int
    name: str
    seconds: float
    peak: float


def main() -> None:
    """Measure each number of shards; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--shards", type=int, nargs="+", default=[138, 3815])
    options = parser.parse_args()
    steps = [step for shards in options.shards for step in measure(options.dataset, shards)]
    rows = [[s.name, f"{s.pairs}", f"{s.seconds:.2f}", f"{s.peak:.0f}"] for s in steps]
    print_table([["", "pairs", "seconds", "peak MiB"], *rows])
    print_json([asdict(step) for step in steps])


def measure(dataset: Path, num_shards: int) -> list[Step]:
    """Open and plan a dataset of `num_shards` shards in a new process."""
    with tempfile.TemporaryDirectory(dir=dataset.absolute().parent) as name:
        folder = Path(name) / "data"
        link_shards(dataset, folder, num_shards)
        context = get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=open_and_plan, args=(folder, theirs))
        process.start()
        theirs.close()
        steps: list[Step] = ours.recv()
        process.join()
    return steps


def link_shards(dataset: Path, folder: Path, num_shards: int) -> None:
    """Write a dataset whose shards are links to the first shard of another dataset."""
    shutil.copytree(dataset, folder, ignore=shutil.ignore_patterns(f"{TRAIN}.*", MANIFEST))
    manifest = read_manifest(dataset, FORMAT, VERSION)
    first = f"{shard_name(0)}."
    files = {name: one for name, one in manifest["files"].items() if not name.startswith(TRAIN)}
    for name, entry in manifest["files"].items():
        if name.startswith(first):
            for number in range(num_shards):
                other = f"{shard_name(number)}.{name.removeprefix(first)}"
                (folder / other).hardlink_to(dataset / name)
                files[other] = entry
    manifest |= {"files": files, "shards": manifest["shards"][:1] * num_shards}
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def open_and_plan(folder: Path, connection: "Connection[Any, Any]") -> None:
    """Run the steps of a rank and send their costs."""
    steps: list[Step] = []

    def timed(name: str, run: Callable[[], Any]) -> Any:
        start = time.monotonic()
        result = run()
        seconds = time.monotonic() - start
        steps.append(Step(num_pairs, name, seconds, getrusage(RUSAGE_SELF).ru_maxrss / MIB))
        return result

    contents = decode(Contents, json.loads((folder / MANIFEST).read_bytes()))
    num_pairs = sum(map(sum, contents.shards))
    dataset: Dataset = timed("open the dataset", lambda: Dataset.open(folder))
    shards = dataset.train
    timed("look for pairs above an update's size", lambda: check_budget(shards, UPDATE_TOKENS))
    sampler = timed("begin a sampler", lambda: Sampler(shards, UPDATE_TOKENS, seed=1))
    last = len(shards) - 1
    timed("plan the first shard", lambda: next(sampler.updates(Position(0, 0, 0))))
    timed("resume in the last shard", lambda: next(sampler.updates(Position(0, last, 1))))
    half = replace(shards[0], weight_runs=((len(shards[0]), FRACTION),))
    timed(
        f"order the shards if all weights are {FRACTION}",
        lambda: Sampler([half] * len(shards), UPDATE_TOKENS, seed=1).shard_order(0),
    )
    connection.send(steps)


if __name__ == "__main__":
    main()
