r"""How fast nmtkit trains, which part takes how long, and how it compares with its peers.

    python -m benchmarks.train
    python -m benchmarks.train --corpus CORPUS --shape small --peers PEERS --peer-python PYTHON

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
from benchmarks.parts import PARTS, REST, Clock, timed_parts
from benchmarks.products import Pools, Product, record, seconds_of
from benchmarks.updates import Workbench, make_dataset, settings_of
from nmtkit.model.estimate.cost import Work, training_operations
from nmtkit.model.kernels.rows import TRAINING, filled_size
from nmtkit.progress.records import TrainingRecord
from nmtkit.runtime.memory import peak_memory
from nmtkit.training.distributed import Ranks

UNIT = "tgt tok/s"
UPDATES = {"small": 10, "base": 3, "big": 2}
BLOCK = {"cpu": 1, "cuda": 10}
"""Updates that are timed before their products are; on a GPU the host runs ahead in them."""

SHARE = "of torch.mm"
MILLI, TERA, MIB = 1e3, 1e12, 2**20
TOLERANCE = 1e-3
"""Largest relative difference of the operations recorded and those counted from the shape."""


def main() -> None:
    """Compare, or with --one measure nmtkit alone."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with train.src, train.tgt, valid.*")
    parser.add_argument("--updates", type=int, help="updates that are timed")
    parser.add_argument("--warm-up", type=int, default=3, help="updates before them")
    parser.add_argument("--update-tokens", type=int, default=4096, help="of nmtkit alone")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of nmtkit alone")
    parser.add_argument(
        "--precisions",
        nargs="+",
        default=["float32", "bfloat16"],
        help="of nmtkit alone",
    )
    parser.add_argument("--one", type=Path, metavar="DATASET", help="measure nmtkit alone, once")
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
    """List nmtkit, in each precision, and the peers that are at hand."""
    own = ["--one", dataset, "--shape", options.shape, "--threads", options.threads]
    own += ["--updates", options.updates, "--warm-up", options.warm_up]
    own += ["--update-tokens", options.update_tokens, "--device", options.device]
    theirs = ["train", "--shape", options.shape, "--data", options.corpus]
    theirs += ["--upd", options.updates, "--warm", options.warm_up]
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
    """List the peers that can do this; they compute on a CPU, and read segmented text."""
    if options.device != "cpu" or options.corpus is None:
        print("peers are left out: they take --device cpu and --corpus", file=sys.stderr)
        return []
    return [
        *peer("floor.py", [*theirs, "--ce", "chunk"], options),
        *peer("hf.py", theirs, options),
    ]


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
    """Time updates, and their matrix products alone."""
    device = bench.context.device
    # The peak is that of two times the timed updates. They are others, because their time includes
    # the kernels that oneDNN makes for the shapes of each update.
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
    """Check that the recorded products are those that follow from the model's shape.

    Products within attention are not recorded: they are small, and torch does not compute them as
    matrix products. Lengths of 0 leave them out of what is counted.
    """
    recipe, target_size = bench.context.recipe, bench.context.dataset.codec.target.size
    tokens = update.num_source_tokens, update.num_target_tokens
    is_filled = bench.context.device.type == "cpu" and recipe.engine.precision == "bfloat16"
    filled = [filled_size(num_tokens, TRAINING) for num_tokens in tokens]
    # Rows of zeros that fill up a product are not counted as operations.
    least, most = (
        training_operations(recipe.model, target_size, Work(source, target, 0, 0))
        for source, target in (tokens, filled if is_filled else tokens)
    )
    recorded = sum(product.operations for product in products)
    if not (1 - TOLERANCE) * least <= recorded <= (1 + TOLERANCE) * most:
        sys.exit(
            f"{recorded / TERA:.4f} TFLOP of products were recorded, of {least / TERA:.4f} that "
            "the shape makes; benchmarks/products.py does not know all operations of this torch"
        )


if __name__ == "__main__":
    main()
