r"""Speed of the loader, and memory of several processes that read one dataset.

    python -m benchmarks.loading DATASET

Loads updates of 25 000 source and target tokens as training does, up to tensors on the CPU: as they
are stored, with subword sampling, and with noise; in this process, by a thread, and by worker
processes. Then several ranks load the same updates, each its micro-batch, and their memory is
counted. A page that n processes share counts 1/n in each, so the sum over all is the memory that
the machine needs.
"""

import argparse
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.common import print_json, print_table
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.batch import make_batch
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position
from nmtkit.runtime.devices import background_thread
from nmtkit.runtime.workers import Worker, ended_early
from nmtkit.training.distributed import Ranks
from nmtkit.training.run import make_loader
from nmtkit.training.updates import Start, UpdateLoader, UpdateReader

CPU = torch.device("cpu")
UPDATE_TOKENS = 25_000
KIBIBYTES = 2**10
"""KiB per MiB; Linux counts the memory of a process in KiB."""


@dataclass(frozen=True)
class Way:
    """A way to load updates.

    Attributes:
        name: in the table.
        is_ahead: a thread prepares batches.
        workers: number of worker processes.
    """

    name: str
    is_ahead: bool
    workers: int


@dataclass(frozen=True)
class Rate:
    """The speed of a way to load updates.

    Attributes:
        reading: name of the way.
        text: what is done to the text, a name in `TEXTS`.
        tokens_per_second: source and target tokens, the median of the rounds.
        lowest, highest: of the rounds.
        first_batch_s: time to the first batch of an open dataset.
    """

    reading: str
    text: str
    tokens_per_second: float
    lowest: float
    highest: float
    first_batch_s: float


@dataclass(frozen=True)
class Memory:
    """Memory of a process, or of several together, in MiB.

    Attributes:
        resident: all of its pages.
        proportional: the same, each page divided by the number of processes that share it.
        private: pages of this process alone.
        mapped: resident pages of the dataset's files.
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

TEXTS: dict[str, dict[str, str]] = {
    "as stored": {},
    "sampled": {"subword_sampling": "both"},
    "noise": {
        "noise": "upper=0.07,title=0.05,typo=0.05,drop-final-punctuation=0.2,join-lines=0.05"
    },
}
"""Settings of what is done to the text."""


def main() -> None:
    """Measure, and print tables and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="a dataset of nmtkit preprocess")
    parser.add_argument("--updates", type=int, default=400, help="per round")
    parser.add_argument(
        "--sampled-updates",
        type=int,
        default=20,
        help="updates per round where text is segmented",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    num_updates = dict.fromkeys(TEXTS, options.sampled_updates) | {"as stored": options.updates}
    rates = [
        measure(options.data, way, text, num_updates[text], options.rounds)
        for text in TEXTS
        if num_updates[text]
        for way in WAYS
    ]
    header = ("read by", "text", "tokens/s", "lowest", "highest", "first batch, s")
    print_table(
        [
            header,
            *(
                (
                    rate.reading,
                    rate.text,
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
    print(f"the training pairs have {size:.0f} MiB; one shard at a time is mapped")
    print_json(
        {
            "rates": [asdict(rate) for rate in rates],
            "memory_mib": {name: asdict(found) for name, found in memory.items()},
            "training_pairs_mib": size,
        }
    )


def recipe_of(text: str, workers: int) -> TrainRecipe:
    """Return a recipe with the settings that loading depends on."""
    return build(
        TrainRecipe,
        {"update_tokens": UPDATE_TOKENS, "read_workers": workers},
        TEXTS[text],
    )


def measure(data: Path, way: Way, text: str, num_updates: int, rounds: int) -> Rate:
    """Load the first updates of an epoch, several times."""
    dataset = Dataset.open(data)
    recipe = recipe_of(text, way.workers)
    rates, waits = [], []
    for _ in range(rounds):
        if way.workers:
            loader = make_loader(recipe, dataset, Ranks(), CPU)
        else:
            reader = UpdateReader.of(recipe, dataset, rank=0, num_ranks=1)
            background = background_thread("loader") if way.is_ahead else None
            loader = UpdateLoader(reader.updates, partial(make_batch, device=CPU), background)
        with closing(loader):
            begin = time.perf_counter()
            tokens = tokens_of_updates(loader, num_micro_batches=1)
            next(tokens)
            start = time.perf_counter()
            num_tokens = sum(islice(tokens, num_updates))
            rates.append(num_tokens / (time.perf_counter() - start))
            waits.append(start - begin)
    return Rate(way.name, text, median(rates), min(rates), max(rates), median(waits))


def tokens_of_updates(loader: UpdateLoader, num_micro_batches: int) -> Iterator[int]:
    """Load one update after another; yield the source and target tokens of this rank."""
    start = Start(Position(0, 0, 0), 1, num_micro_batches)
    while True:
        loaded = loader.load(start)
        start = loaded.following
        yield sum(sum(batch.sizes) for batch in loaded.micro_batches.values())


def memory_of_ranks(data: Path, num_ranks: int, num_updates: int) -> Memory:
    """Have several ranks load updates at the same time; return the sum of their memory."""
    workers: list[Worker[Memory | None]] = []
    try:
        for rank in range(num_ranks):
            workers.append(Worker(read_and_hold, ended_early("take fewer --ranks")))
            workers[-1].send((data, rank, num_ranks, num_updates))
        for worker in workers:
            worker.receive()
        for worker in workers:
            worker.send("all have loaded")
        each = [asdict(one) for worker in workers if (one := worker.receive())]
    finally:
        for worker in workers:
            worker.end()
    return Memory(**{name: sum(one[name] for one in each) for name in each[0]})


def read_and_hold(connection: "Connection[Memory | None, Any]") -> None:
    """Load a rank's part of some updates; count memory while all other ranks hold theirs."""
    data, rank, num_ranks, num_updates = connection.recv()
    torch.set_num_threads(1)
    if num_updates:
        ranks = Ranks(rank, num_ranks)
        loader = make_loader(recipe_of("as stored", 0), Dataset.open(data), ranks, CPU)
        for _ in islice(tokens_of_updates(loader, num_ranks), num_updates):
            pass
    connection.send(None)
    connection.recv()
    connection.send(own_memory(data))
    connection.recv()  # waits until the others have counted, too


def own_memory(data: Path) -> Memory:
    """Read this process's memory from Linux."""
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
