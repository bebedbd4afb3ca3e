"""The corpus of the comparisons: random text in words w00000, w00001, ..., already segmented.

    python -m benchmarks.peers.corpus FOLDER --words 8000
    python -m benchmarks.peers.corpus FOLDER --words 32000

Words have the frequencies of Zipf and Mandelbrot, and lengths of sentences are log-normal with a
mean of 25, as in real text. Most target words are those at the same place of the source, renamed.
"""

import argparse
from pathlib import Path

import numpy as np

PARTS = {"train": 200_000, "valid": 1_000, "test": 1_000}
MEAN_LENGTH, LENGTH_DEVIATION, RATIO_DEVIATION, MOST_WORDS = 25, 0.6, 0.18, 150
ZIPF_OFFSET = 2.7
KEPT = 0.8
"""Fraction of the target's words that come from the source."""


def main() -> None:
    """Write train, valid and test of both sides."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", type=int, default=8000, help="8000 for small, 32000 for base")
    parser.add_argument("--pairs", type=int, default=PARTS["train"], help="training pairs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    frequencies = 1 / (np.arange(options.words) + ZIPF_OFFSET)
    frequencies /= frequencies.sum()
    renamed = random.permutation(options.words)
    names = np.array([f"w{word:05d}" for word in range(options.words)])
    for part, count in (PARTS | {"train": options.pairs}).items():
        with (
            (options.folder / f"{part}.src").open("w") as sources,
            (options.folder / f"{part}.tgt").open("w") as targets,
        ):
            for length in random.lognormal(
                np.log(MEAN_LENGTH) - LENGTH_DEVIATION**2 / 2, LENGTH_DEVIATION, count
            ):
                lengths = [length, length * random.lognormal(0, RATIO_DEVIATION)]
                size, target_size = np.clip(np.rint(lengths), 1, MOST_WORDS).astype(int)
                source, others = (
                    random.choice(options.words, number, p=frequencies)
                    for number in (size, target_size)
                )
                same = renamed[source[np.arange(target_size) * size // target_size]]
                target = np.where(random.random(target_size) < KEPT, same, others)
                sources.write(" ".join(names[source]) + "\n")
                targets.write(" ".join(names[target]) + "\n")


if __name__ == "__main__":
    main()
