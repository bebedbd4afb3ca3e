r"""Training speed of nmtkit and its peers: target tokens per second and peak memory.

    python -m benchmarks.train
    python -m benchmarks.train --corpus CORPUS --peers marian loop fairseq --peer-python PYTHON

CORPUS is a folder of `python -m benchmarks.peers.corpus`; the default is the corpus of the demo.
Dropout 0.1, label smoothing 0.1, Adam, gradients clipped at norm 1. An update has 4096 tokens:
source and target tokens each for nmtkit, padded tokens of the longer side for the peers, which
compute in float32. Start-up and warm-up are not counted. On a GPU:

    python -m benchmarks.train --corpus CORPUS --shape base --device cuda --update-tokens 25000 \
      --updates 100
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import (
    MIB,
    OWN_NAME,
    Contender,
    add_peer_options,
    compare,
    module,
    peer,
    print_measurement,
)
from benchmarks.memory import wait
from benchmarks.updates import Workbench, make_dataset, settings_of
from nmtkit.runtime.devices import peak_memory
from nmtkit.training.distributed import Ranks

UNIT = "tgt tok/s"
UPDATES = {"small": 10, "base": 3, "big": 2}


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
    if options.peers and (options.device != "cpu" or options.corpus is None):
        sys.exit("--peers need --device cpu and --corpus")
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "dataset"
        make_dataset(options.corpus, dataset)
        compare(contenders(options, dataset), options, UNIT)


def contenders(options: argparse.Namespace, dataset: Path) -> list[Contender]:
    """List nmtkit in each precision and the peers."""
    common = ["--shape", options.shape, "--threads", options.threads]
    common += ["--updates", options.updates, "--warm-up", options.warm_up]
    own = ["--one", dataset, *common]
    own += ["--update-tokens", options.update_tokens, "--device", options.device]
    theirs = ["train", "--corpus", options.corpus, *common]
    return [
        *(
            Contender(
                f"{OWN_NAME} {precision}",
                module("benchmarks.train", [*own, "--precisions", precision]),
            )
            for precision in options.precisions
        ),
        *(peer(name, theirs, options) for name in options.peers),
    ]


def train_once(options: argparse.Namespace) -> None:
    """Run the updates of `nmtkit train` and print their rate."""
    (precision,) = options.precisions
    machine = {"device": options.device, "precision": precision, "threads": options.threads}
    settings = settings_of(options.shape, options.update_tokens, machine)
    with Workbench.opened(settings, options.one, Ranks()) as bench:
        device = bench.context.device
        # The timed updates are others than these, so that their time includes the code that oneDNN
        # generates for the shapes of each update. A process grows in about its first ten updates.
        bench.run(options.warm_up + options.updates)
        wait(device)
        start = time.perf_counter()
        bench.run(options.updates)
        wait(device)
        rate = bench.record().num_target_tokens / (time.perf_counter() - start)
        peak = peak_memory(device) / (1024 * MIB)
    print_measurement(f"train {options.shape} {precision}", rate, UNIT, peak)


if __name__ == "__main__":
    main()
