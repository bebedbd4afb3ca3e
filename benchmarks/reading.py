r"""How fast batches are read, and what memory many processes that read one dataset need.

    python -m benchmarks.reading DATASET

Reads updates of 25 000 source and target tokens as training does, up to tensors on the CPU, with
text as it is stored and cut anew: in this process, by a thread of it, and by other processes. Then
several ranks read the same updates, each its slot, and every byte of memory is counted: what they
share in equal parts, so that the sum over all is what the machine must have.
"""

import argparse
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import torch
from nmtkit.training.reading import NUM_AHEAD, Reader, Reading
from nmtkit.training.shares import Shares
from nmtkit.training.slots import Cut

from benchmarks.common import print_json, print_table
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position
from nmtkit.processes import Worker
from nmtkit.training.distributed import Ranks

CPU = torch.device("cpu")
UPDATE_TOKENS = 25_000
KIBIBYTES = 2**10
"""Of a MiB; what Linux counts a process's memory in."""


@dataclass(frozen=True)
class Way:
    """A way to read.

    Attributes:
        name: as the table has it.
        is_ahead: a thread prepares batches.
        workers: processes that read for it.
    """

    name: str
    is_ahead: bool
    workers: int


@dataclass(frozen=True)
class Rate:
    """What reading in some way came to.

    Attributes:
        reading: the way.
        sampling: the sides whose text is cut anew.
        tokens_per_second: source and target tokens, the median of the rounds.
        lowest, highest: of the rounds.
        first_batch_s: from nothing to the first batch, the dataset being open.
    """

    reading: str
    sampling: str
    tokens_per_second: float
    lowest: float
    highest: float
    first_batch_s: float


@dataclass(frozen=True)
class Memory:
    """What a process, or the sum of several, needs, in MiB.

    Attributes:
        resident: all pages that it has.
        proportional: each divided by the number of processes that have it.
        private: those that no other has.
        mapped: of the dataset's files, resident.
        mapped_proportional: the same, each divided.
    """

    resident: float
    proportional: float
    private: float
    mapped: float
    mapped_proportional: float


WAYS = (
    Way("this process", is_ahead=False, workers=0),
    Way("a thread", is_ahead=True, workers=0),
    Way("1 process", is_ahead=True, workers=1),
    Way("2 processes", is_ahead=True, workers=2),
)


def main() -> None:
    """Measure, and print tables and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="a dataset of nmtkit preprocess")
    parser.add_argument("--updates", type=int, default=400, help="to read in each round")
    parser.add_argument("--resampled-updates", type=int, default=20, help="where text is cut anew")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    samplings = {"none": options.updates, "both": options.resampled_updates}
    rates = [
        measure(options.data, way, sampling, num_updates, options.rounds)
        for sampling, num_updates in samplings.items()
        if num_updates
        for way in WAYS
    ]
    header = ("read by", "cut anew", "tokens/s", "lowest", "highest", "first batch, s")
    print_table(
        [
            header,
            *(
                (
                    rate.reading,
                    rate.sampling,
                    f"{rate.tokens_per_second:,.0f}",
                    f"{rate.lowest:,.0f}",
                    f"{rate.highest:,.0f}",
                    f"{rate.first_batch_s:.2f}",
                )
                for rate in rates
            ),
        ]
    )
    memory = {
        "1 rank, before it reads": memory_of_ranks(options.data, 1, 0),
        "1 rank": memory_of_ranks(options.data, 1, options.updates),
        f"{options.ranks} ranks": memory_of_ranks(options.data, options.ranks, options.updates),
    }
    size = sum(path.stat().st_size for path in options.data.glob("train.*")) / 2**20
    names = ("MiB", "resident", "proportional", "private", "mapped", "mapped, proportional")
    sizes = {name: [f"{mib:.0f}" for mib in asdict(sum_).values()] for name, sum_ in memory.items()}
    print_table([names, *((name, *cells) for name, cells in sizes.items())])
    print(f"the training pairs are {size:.0f} MiB, one shard of which is mapped at a time")
    print_json(
        {
            "rates": [asdict(rate) for rate in rates],
            "memory_mib": {name: asdict(found) for name, found in memory.items()},
            "training_pairs_mib": size,
        }
    )


def recipe_of(sampling: str, workers: int) -> TrainRecipe:
    """Return a recipe for reading; all else of it does not matter."""
    return build(
        TrainRecipe,
        {"update_tokens": UPDATE_TOKENS, "read_workers": workers},
        {"subword_sampling": sampling},
    )


def measure(data: Path, way: Way, sampling: str, num_updates: int, rounds: int) -> Rate:
    """Read the first updates of an epoch, several times."""
    dataset = Dataset.open(data)
    recipe = recipe_of(sampling, way.workers)
    rates, waits = [], []
    for _ in range(rounds):
        if way.workers:
            reader = Reader.of(recipe, dataset, Ranks(), CPU)
        else:
            shares = Shares.of(recipe, dataset, rank=0, num_ranks=1)
            reader = Reader(shares.slots, CPU, NUM_AHEAD if way.is_ahead else 0)
        with closing(reader):
            begin = time.perf_counter()
            reading = all_of(reader, Cut(1, 1))
            next(reading)
            start = time.perf_counter()
            num_tokens = sum(sizes for _, sizes in zip(range(num_updates), reading, strict=False))
            rates.append(num_tokens / (time.perf_counter() - start))
            waits.append(start - begin)
    return Rate(way.name, sampling, median(rates), min(rates), max(rates), median(waits))


def all_of(reader: Reader, cut: Cut) -> Iterator[int]:
    """Read one update after another; yields the source and target tokens of this rank's share."""
    position = Position(0, 0, 0)
    for number in count(1):
        reading: Reading = reader.read(position, number, cut)
        position = reading.position
        yield sum(sum(batch.sizes) for _, batch in reading.slots)


def memory_of_ranks(data: Path, num_ranks: int, num_updates: int) -> Memory:
    """Have several ranks read some updates at once; returns the sum of their memory."""
    workers: list[Worker[Memory | None]] = []
    try:
        for rank in range(num_ranks):
            workers.append(Worker(read_and_hold, "take fewer --ranks"))
            workers[-1].send((data, rank, num_ranks, num_updates))
        for worker in workers:
            worker.receive()
        for worker in workers:
            worker.send("all have read")
        each = [asdict(one) for worker in workers if (one := worker.receive())]
    finally:
        for worker in workers:
            worker.end()
    return Memory(**{name: sum(one[name] for one in each) for name in each[0]})


def read_and_hold(connection: "Connection[Memory | None, Any]") -> None:
    """Read a rank's share of some updates; then, while all others hold theirs, count memory."""
    data, rank, num_ranks, num_updates = connection.recv()
    torch.set_num_threads(1)
    if num_updates:
        shares = Shares.of(recipe_of("none", 0), Dataset.open(data), rank, num_ranks)
        reading = all_of(Reader(shares.slots, CPU, 0), Cut(num_ranks, 1))
        for _ in zip(range(num_updates), reading, strict=False):
            pass
    connection.send(None)
    connection.recv()
    connection.send(own_memory(data))
    connection.recv()  # until the others have counted, too


def own_memory(data: Path) -> Memory:
    """Count this process's memory, as Linux tells it."""
    process = Path("/proc") / str(os.getpid())
    whole = sums_of((process / "smaps_rollup").read_text())
    maps = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", (process / "smaps").read_text())
    mapped = sums_of("\n".join(one for one in maps if f"{data.resolve()}/" in one))
    return Memory(
        resident=whole["Rss"],
        proportional=whole["Pss"],
        private=whole["Private_Clean"] + whole["Private_Dirty"],
        mapped=mapped["Rss"],
        mapped_proportional=mapped["Pss"],
    )


def sums_of(maps: str) -> dict[str, float]:
    """Add up each kind of memory, in MiB, over maps as Linux describes them."""
    kinds = ("Rss", "Pss", "Private_Clean", "Private_Dirty")
    return {
        kind: sum(map(int, re.findall(rf"^{kind}: +(\d+) kB", maps, re.M))) / KIBIBYTES
        for kind in kinds
    }


if __name__ == "__main__":
    main()
