r"""Training speed of nmtkit, time of an update by part, and comparison with peers.

    python -m benchmarks.train
    python -m benchmarks.train --corpus CORPUS --peers marian loop --peer-python PYTHON

CORPUS is a folder with train.src, train.tgt, valid.src and valid.tgt, which are segmented; the
default is the corpus of the demo. Dropout 0.1, label smoothing 0.1, Adam, gradients clipped at
norm 1. An update has 4096 tokens: source and target tokens each for nmtkit, padded tokens of the
longer side for the peers, which compute in float32. Start-up and warm-up are not counted.

The table has target tokens per second; the updates' share of the rate that torch.mm reaches for the
same matrix products, interleaved with the updates in the same process; milliseconds of an update by
part; peak memory; and how many times as fast as each contender nmtkit is. JSON follows. On a GPU:

    python -m benchmarks.train --corpus CORPUS --shape base --device cuda --update-tokens 25000 \
      --updates 100
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.common import (
    OWN_NAME,
    Contender,
    Summary,
    add_peer_options,
    module,
    peer,
    print_json,
    print_measurement,
    print_table,
    run_rounds,
)
from benchmarks.products import Pools, Product, record, seconds_of
from benchmarks.update_parts import PARTS, REST, Clock, timed_parts
from benchmarks.updates import Workbench, make_dataset, settings_of
from nmtkit.model.cost import Workload, training_operations
from nmtkit.model.kernels.training import TRAINING_SIZES, padded_size
from nmtkit.progress.records import TrainingRecord
from nmtkit.runtime.devices import peak_memory
from nmtkit.training.distributed import Ranks

UNIT = "tgt tok/s"
UPDATES = {"small": 10, "base": 3, "big": 2}
BLOCK = {"cpu": 1, "cuda": 10}
"""Updates timed together; on a GPU the host runs ahead within a block."""

SHARE = "of torch.mm"
MILLI, TERA, MIB = 1e3, 1e12, 2**20
TOLERANCE = 1e-3
"""Largest relative difference of the operations recorded and those counted from the shape."""


def main() -> None:
    """Compare with peers; with --one, measure nmtkit only."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with train.src, train.tgt, valid.*")
    parser.add_argument("--updates", type=int, help="timed updates")
    parser.add_argument("--warm-up", type=int, default=3, help="updates before the timed ones")
    parser.add_argument(
        "--update-tokens", type=int, default=4096, help="tokens per side of an update; nmtkit only"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="device; nmtkit only"
    )
    parser.add_argument(
        "--precisions",
        nargs="+",
        default=["float32", "bfloat16"],
        help="precisions to measure; nmtkit only",
    )
    parser.add_argument("--one", type=Path, metavar="DATASET", help="measure nmtkit only, once")
    options = parser.parse_args()
    options.updates = options.updates or UPDATES[options.shape]
    if options.one:
        train_once(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "dataset"
        make_dataset(options.corpus, dataset)
        summaries = run_rounds(contenders(options, dataset), options, UNIT)
    print_table(list(table(summaries)))
    print_json(
        {
            "shape": options.shape,
            "device": options.device,
            "update_tokens": options.update_tokens,
            "unit": UNIT,
            "contenders": [asdict(one) for one in summaries],
        }
    )


def contenders(options: argparse.Namespace, dataset: Path) -> list[Contender]:
    """List nmtkit in each precision and the available peers."""
    own = ["--one", dataset, "--shape", options.shape, "--threads", options.threads]
    own += ["--updates", options.updates, "--warm-up", options.warm_up]
    own += ["--update-tokens", options.update_tokens, "--device", options.device]
    theirs = ["train", "--shape", options.shape, "--corpus", options.corpus]
    theirs += ["--updates", options.updates, "--warm-up", options.warm_up]
    theirs += ["--threads", options.threads]
    return [
        *(
            Contender(
                f"{OWN_NAME} {precision}",
                module("benchmarks.train", [*own, "--precisions", precision]),
            )
            for precision in options.precisions
        ),
        *(peers(options, theirs) if options.peers else []),
    ]


def peers(options: argparse.Namespace, theirs: list[object]) -> list[Contender]:
    """List the peers, which need a CPU and segmented text."""
    if options.device != "cpu" or options.corpus is None:
        print("peers are left out: they need --device cpu and --corpus", file=sys.stderr)
        return []
    return [peer(name, theirs, options) for name in options.peers]


def table(summaries: Sequence[Summary]) -> list[tuple[str, ...]]:
    """Return rows of measurements, a column per contender; a peer's unknown cells are empty."""
    own = list(summaries[0].ratios)
    rows = {
        UNIT: [f"{one.rate:.0f}" for one in summaries],
        "lowest": [f"{min(one.rates):.0f}" for one in summaries],
        "highest": [f"{max(one.rates):.0f}" for one in summaries],
        SHARE: [f"{one.details[SHARE]:.1%}" if one.details else "" for one in summaries],
        **{
            f"{part}, ms": [f"{one.details[part]:.1f}" if one.details else "" for one in summaries]
            for part in (*PARTS, REST)
        },
        "peak MiB": [f"{one.peak_mib:.0f}" for one in summaries],
        **{f"{name} / it": [f"{one.ratios[name]:.3f}" for one in summaries] for name in own},
    }
    header = ("", *(one.name for one in summaries))
    return [header, *((name, *cells) for name, cells in rows.items())]


def train_once(options: argparse.Namespace) -> None:
    """Run the updates of `nmtkit train`; print their parts and their rate."""
    (precision,) = options.precisions
    machine = {"device": options.device, "precision": precision, "threads": options.threads}
    settings = settings_of(options.shape, options.update_tokens, machine)
    with Workbench.opened(settings, options.one, Ranks()) as bench:
        measure(bench, options)


def measure(bench: Workbench, options: argparse.Namespace) -> None:
    """Time updates, and separately their matrix products."""
    device = bench.context.device
    # The peak is of these updates. The timed ones are others, so that their time includes the code
    # that oneDNN generates for the shapes of each update.
    bench.run(options.warm_up + options.updates)
    peak = peak_memory(device) / MIB  # before there are operands of products
    clock, pools = Clock(device), Pools(device)
    seconds = operations = of_products = product_seconds = 0.0
    num_tokens = 0
    block = BLOCK[options.device]
    for first in range(0, options.updates, block):
        size = min(block, options.updates - first)
        with bench.repeated_after(), timed_parts(clock):
            begin = clock.mark()
            bench.run(size)
            seconds += clock.read(begin)
            timed = bench.record()
        operations += timed.operations or 0.0
        num_tokens += timed.num_target_tokens
        for _ in range(size):
            _, products = record(lambda: bench.run(1))
            check(bench, bench.record(), products)
            of_products += sum(one.operations for one in products)
            product_seconds += seconds_of(products, pools, device)
    share = (operations / seconds) / (of_products / product_seconds)
    milliseconds = {part: MILLI * clock.seconds[part] / options.updates for part in clock.seconds}
    print_json({SHARE: share, "TFLOP/s": operations / seconds / TERA, **milliseconds})
    name = f"train {options.shape} {bench.context.recipe.engine.precision}"
    print_measurement(name, num_tokens / seconds, UNIT, peak)


def check(bench: Workbench, update: TrainingRecord, products: Sequence[Product]) -> None:
    """Check that the recorded products agree with the operations counted from the shape.

    Products within attention are not recorded: they are small, and torch does not compute them as
    matrix products. Lengths of 0 leave them out of what is counted.
    """
    recipe, target_size = bench.context.recipe, bench.context.dataset.codec.target.size
    tokens = update.num_source_tokens, update.num_target_tokens
    is_padded = bench.context.device.type == "cpu" and recipe.engine.precision == "bfloat16"
    padded = [padded_size(num_tokens, TRAINING_SIZES) for num_tokens in tokens]
    # Rows of zeros that pad a product do not count as operations.
    least, most = (
        training_operations(recipe.model, target_size, Workload(source, target, 0, 0))
        for source, target in (tokens, padded if is_padded else tokens)
    )
    recorded = sum(product.operations for product in products)
    if not (1 - TOLERANCE) * least <= recorded <= (1 + TOLERANCE) * most:
        sys.exit(
            f"recorded products have {recorded / TERA:.4f} TFLOP, but the shape has "
            f"{least / TERA:.4f}; add the missing operations of this torch to "
            "benchmarks/products.py"
        )


if __name__ == "__main__":
    main()
