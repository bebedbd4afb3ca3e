r"""How fast nmtkit trains, what of it takes how long, and beside its peers.

    python -m benchmarks.train
    python -m benchmarks.train --corpus CORPUS --shape small --peers PEERS --peer-python PYTHON

CORPUS is a folder with train.src, train.tgt, valid.src and valid.tgt, segmented already; without
one, it is the demonstration's. Dropout 0.1, label smoothing 0.1, Adam, gradients clipped at norm 1,
updates of 4096 tokens: source and target tokens each for nmtkit, padded tokens of the longer side
for the peers, which compute in float32. Start-up and the first updates are not counted.

One table: target tokens a second; which share of their rate torch.mm reaches for the same matrix
products, done by turns with the updates in the same process; milliseconds of an update by part;
peak memory; and how many times as fast as each contender nmtkit is. Then all as JSON. Likewise on a
GPU:

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
from benchmarks.updates import WHOLE, Workbench, make_dataset, settings_of
from nmtkit.data.sampler import Update
from nmtkit.model.cost import Work, training_operations
from nmtkit.model.rows import filled_size
from nmtkit.runtime import peak_memory
from nmtkit.training.distributed import Ranks
from nmtkit.training.meter import Costs

UNIT = "tgt tok/s"
UPDATES = {"small": 10, "base": 3, "big": 2}
BLOCK = {"cpu": 1, "cuda": 10}
"""So many updates are done before the products are; on a GPU, the host runs ahead within them."""

SHARE = "of torch.mm"
MILLI, TERA, MIB = 1e3, 1e12, 2**20
TOLERANCE = 1e-3
"""Of the operations that were recorded, beside those that are counted from the shape."""


def main() -> None:
    """Compare, or with --one measure nmtkit alone."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with train.src, train.tgt, valid.*")
    parser.add_argument("--updates", type=int, help="updates that are timed")
    parser.add_argument("--warm-up", type=int, default=3, help="updates before them")
    parser.add_argument("--update-tokens", type=int, default=4096, help="nmtkit's own alone")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="likewise")
    parser.add_argument(
        "--precisions",
        nargs="+",
        default=["float32", "bfloat16"],
        help="likewise, one after another",
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
    """Put what was measured in rows, a contender a column; what one does not tell is left out."""
    own = list(summaries[0].ratios)
    told = {
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
    return [header, *((name, *cells) for name, cells in told.items())]


def train_once(options: argparse.Namespace) -> None:
    """Do the updates of `nmtkit train`; print how they went, and their rate."""
    (precision,) = options.precisions
    machine = {"device": options.device, "precision": precision, "threads": options.threads}
    settings = settings_of(options.shape, options.update_tokens, machine)
    bench = Workbench(settings, options.one, WHOLE, Ranks())
    # As many as are timed, so that the peak is of as many; and others, as kernels that are made for
    # the shapes of an update are a part of its time.
    for _ in range(options.warm_up + options.updates):
        bench.run()
    peak = peak_memory(bench.device) / MIB  # before there are operands of products
    clock, pools = Clock(bench.device), Pools(bench.device)
    costs = Costs(bench.recipe.model, bench.dataset.codec.target.size, None)
    seconds = operations = of_products = product_seconds = 0.0
    num_tokens = 0
    block = BLOCK[options.device]
    for first in range(0, options.updates, block):
        size = min(block, options.updates - first)
        with bench.again(), timed_parts(clock):
            begin = clock.mark()
            done = [bench.run() for _ in range(size)]
            seconds += clock.read(begin)
        operations += costs.counted(done)
        num_tokens += sum(update.num_target_tokens for update, _ in done)
        for _ in range(size):
            (update, _), found = record(bench.run)
            check(bench, update, found)
            of_products += sum(one.operations for one in found)
            product_seconds += seconds_of(found, pools, bench.device)
    bench.close()
    share = (operations / seconds) / (of_products / product_seconds)
    milliseconds = {part: MILLI * clock.seconds[part] / options.updates for part in clock.seconds}
    print_json({SHARE: share, "TFLOP/s": operations / seconds / TERA, **milliseconds})
    print_measurement(f"train {options.shape} {precision}", num_tokens / seconds, UNIT, peak)


def check(bench: Workbench, update: Update, products: Sequence[Product]) -> None:
    """Check that the products that were recorded are those that the shape makes one expect.

    Those within attention are not: they are fewer than the rest by far, and no matrix products to
    torch. For them, lengths of 0 are counted.
    """
    tokens = update.num_source_tokens, update.num_target_tokens
    is_filled = bench.device.type == "cpu" and bench.recipe.engine.precision == "bfloat16"
    # What is done for rows that are filled up does not count as done.
    least, most = (
        training_operations(
            bench.recipe.model, bench.dataset.codec.target.size, Work(source, target, 0, 0)
        )
        for source, target in (tokens, map(filled_size, tokens) if is_filled else tokens)
    )
    recorded = sum(product.operations for product in products)
    if not (1 - TOLERANCE) * least <= recorded <= (1 + TOLERANCE) * most:
        sys.exit(
            f"{recorded / TERA:.4f} TFLOP of products were recorded, of {least / TERA:.4f} that "
            "the shape makes; benchmarks/products.py does not know all operations of this torch"
        )


if __name__ == "__main__":
    main()
