r"""How fast nmtkit trains, beside its peers: target tokens a second and peak memory.

    python -m benchmarks.train --corpus CORPUS --shape small --peers PEERS --peer-python PYTHON

CORPUS is a folder with train.src, train.tgt, valid.src and valid.tgt, segmented already. Float32,
dropout 0.1, label smoothing 0.1, Adam, gradients clipped at norm 1, updates of 4096 tokens: source
and target tokens each for nmtkit, padded tokens of the longer side for the peers. Start-up and the
first updates are not counted. On a GPU, without peers:

    python -m benchmarks.train --corpus CORPUS --shape base --device cuda --precision bfloat16 \
      --update-tokens 25000 --updates 100
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.common import (
    OWN_NAME,
    Contender,
    add_peer_options,
    compare,
    module,
    peer,
    print_measurement,
)
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position
from nmtkit.runtime import set_up
from nmtkit.training.distributed import Ranks
from nmtkit.training.optimizer import learning_rate
from nmtkit.training.reading import Reader
from nmtkit.training.run import make_learner, make_objective
from nmtkit.training.slots import Cut
from nmtkit.training.stopping import StopRequest
from nmtkit.training.updating import Updater

UNIT = "tgt tok/s"
WHOLE = Cut(num_slots=1, num_pieces=1)
UPDATES = {"small": 30, "base": 8, "big": 8}


def main() -> None:
    """Compare, or with --one measure nmtkit alone."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_peer_options(parser)
    parser.add_argument("--corpus", type=Path, help="folder with train.src, train.tgt, valid.*")
    parser.add_argument("--updates", type=int, help="updates that are timed")
    parser.add_argument("--warm-up", type=int, default=3, help="updates before them")
    parser.add_argument("--update-tokens", type=int, default=4096, help="nmtkit's own alone")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="likewise")
    parser.add_argument("--precision", default="float32", help="likewise: float32, bfloat16")
    parser.add_argument("--one", type=Path, metavar="DATASET", help="measure nmtkit alone, once")
    options = parser.parse_args()
    options.updates = options.updates or UPDATES[options.shape]
    if options.one:
        train_once(options)
    elif options.corpus is None:
        parser.error("--corpus is required")
    else:
        with tempfile.TemporaryDirectory() as folder:
            dataset = Path(folder) / "dataset"
            make_dataset(options.corpus, dataset)
            compare(contenders(options, dataset), options, UNIT)


def contenders(options: argparse.Namespace, dataset: Path) -> list[Contender]:
    """List nmtkit and the peers that are at hand."""
    own = ["--one", dataset, "--shape", options.shape, "--threads", options.threads]
    own += ["--updates", options.updates, "--warm-up", options.warm_up]
    own += ["--update-tokens", options.update_tokens]
    own += ["--device", options.device, "--precision", options.precision]
    theirs = ["train", "--shape", options.shape, "--data", options.corpus]
    theirs += ["--upd", options.updates, "--warm", options.warm_up]
    return [
        Contender(OWN_NAME, module("benchmarks.train", own)),
        *peer("floor.py", [*theirs, "--ce", "chunk"], options),
        *peer("hf.py", theirs, options),
    ]


def make_dataset(corpus: Path, out: Path) -> None:
    """Convert the corpus as a user would."""
    languages = ["-s", "src", "-t", "tgt", "--segmentation", "words", "--vocab-size", 100_000]
    files = ["--train", corpus / "train", "--valid", corpus / "valid", "--out", out]
    subprocess.run(module("nmtkit_cli", ["preprocess", *languages, *files]), check=True)


def train_once(options: argparse.Namespace) -> None:
    """Do the updates of `nmtkit train`, without what it does between them, and print their rate."""
    tokens = options.update_tokens
    settings = {"update_tokens": tokens, "max_tokens": tokens, "clip_norm": 1.0}
    machine = {"device": options.device, "precision": options.precision, "threads": options.threads}
    recipe = build(TrainRecipe, PRESETS[options.shape], settings, machine)
    device = set_up(recipe.runtime)
    dataset = Dataset.open(options.one)
    learner = make_learner(recipe, dataset, device)
    objective = make_objective(recipe, learner.model).train()
    updater = Updater(objective, learner, recipe, Ranks(), StopRequest())
    reader = Reader.of(recipe, dataset, Ranks(), device)
    position = Position(0, 0, 0)
    num_tokens, start = 0, time.perf_counter()
    for number in range(1, options.warm_up + options.updates + 1):
        reading = reader.read(position, number, WHOLE)
        position = reading.position
        updater.compute(reading, time.perf_counter)
        updater.apply(number, learning_rate(number, recipe.model.model_size, recipe.training))
        num_tokens += reading.update.num_target_tokens
        if number == options.warm_up:
            num_tokens, start = 0, time.perf_counter()
    reader.close()
    print_measurement(f"train {options.shape}", num_tokens / (time.perf_counter() - start), UNIT)


if __name__ == "__main__":
    main()
