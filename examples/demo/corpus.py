"""Write the demonstration's parallel corpus: `python -m examples.demo.corpus FOLDER`.

No sentence of either side is repeated, within a file or between files.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from examples.demo.grammar import Grammar
from examples.demo.lexicon import Phrase, load_lexicon

SIZES = {"train": 20_000, "valid": 200, "test": 200}


def main() -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description="Write train, valid and test, .en and .de.")
    parser.add_argument("folder", type=Path, help="where to; is not there yet")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other sentences")
    arguments = parser.parse_args()
    write(split(arguments.seed, SIZES), arguments.folder)


def write(parts: dict[str, list[Phrase]], folder: Path) -> None:
    """Write two files per part, one sentence per line; the folder appears whole."""
    staged = folder.with_name(f".{folder.name}.partial")
    staged.mkdir(parents=True, exist_ok=True)
    for name, pairs in parts.items():
        for suffix, lines in (
            ("en", [pair.english for pair in pairs]),
            ("de", [pair.german for pair in pairs]),
        ):
            path = staged / f"{name}.{suffix}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    staged.replace(folder)


def split(seed: int, sizes: dict[str, int]) -> dict[str, list[Phrase]]:
    """Draw distinct pairs and deal them out by name."""
    pairs = list(islice(distinct(Grammar(load_lexicon(), seed).sentences()), sum(sizes.values())))
    Random(seed).shuffle(pairs)  # the rare kinds of sentences come late among distinct ones
    remaining = iter(pairs)
    return {name: list(islice(remaining, size)) for name, size in sizes.items()}


def distinct(pairs: Iterator[Phrase]) -> Iterator[Phrase]:
    """Drop the pairs of which either side has been seen."""
    seen: set[str] = set()
    for pair in pairs:
        if pair.english not in seen and pair.german not in seen:
            seen.update((pair.english, pair.german))
            yield pair


if __name__ == "__main__":
    main()
