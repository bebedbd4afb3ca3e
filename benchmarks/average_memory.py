"""Memory use of checkpoint averaging, by number of checkpoints.

    python -m benchmarks.average_memory

Every checkpoint is the same model of the paper's base size with random weights, named and read once
per checkpoint. Each number of checkpoints is measured in a separate process. Peaks include the
mapped pages of the models.
"""

import argparse
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.common import peaks, print_json, print_table
from nmtkit.averaging import average
from nmtkit.config.schema import TrainRecipe
from nmtkit.model.transformer import Transformer
from nmtkit.storage.model_folder import write_model
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec

NUM_WORDS = 37_000
"""Entries of the paper's shared vocabulary of English and German."""


@dataclass(frozen=True)
class Peak:
    """Peak memory of averaging a number of checkpoints.

    Attributes:
        checkpoints: number of checkpoints.
        mib: peak of the process.
        ratio: divided by the peak of the first count.
    """

    checkpoints: int
    mib: float
    ratio: float


def main() -> None:
    """Measure each count, and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--counts",
        type=int,
        nargs="+",
        default=[2, 5, 20],
        help="numbers of checkpoints to average",
    )
    counts = parser.parse_args().counts
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder) / "model", Path(folder) / "out"
        # A separate process: the peak of a child is never below its parent's.
        peaks(write_base_model, model)
        sizes = [peaks(average, [model] * count, out, {}, True)[0] for count in counts]
    results = [Peak(count, mib, mib / sizes[0]) for count, mib in zip(counts, sizes, strict=True)]
    rows = [[f"{one.checkpoints}", f"{one.mib:.0f}", f"{one.ratio:.3f}"] for one in results]
    print_table([["checkpoints", "peak MiB", "ratio"], *rows])
    print_json([asdict(one) for one in results])


def write_base_model(folder: Path) -> None:
    """Write a model folder of the paper's base size."""
    recipe = TrainRecipe()
    words = Words([f"w{number:05}" for number in range(NUM_WORDS)])
    codec = TextCodec("en", "de", words, words, is_shared=True)
    model = Transformer(recipe.model, words.size, words.size, codec.is_shared)
    write_model(
        folder, model.state_dict(), recipe, codec, {"update": 0, "provenance": {}}, overwrite=False
    )


if __name__ == "__main__":
    main()
