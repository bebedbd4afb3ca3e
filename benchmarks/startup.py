"""Time of short commands: nmtkit --help, and nmtkit score of 3 000 lines.

python -m benchmarks.startup
"""

import argparse
import random
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks.common import module, print_json, print_table

NUM_LINES = 3000
LINE_WORDS = (5, 40)
NUM_WORDS = 5000
COPIED = 0.7
"""Fraction of the words that translation and reference share."""


@dataclass(frozen=True)
class Timing:
    """Seconds that a command took in each round."""

    command: str
    seconds: list[float]


def main() -> None:
    """Run the commands interleaved and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each command")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        translations, reference = Path(folder) / "translations", Path(folder) / "reference"
        write_text(translations, reference)
        score = module("nmtkit_cli", ["score", "--reference", reference])
        timings = [Timing("nmtkit --help", []), Timing(f"nmtkit score, {NUM_LINES} lines", [])]
        for _ in range(rounds):
            timings[0].seconds.append(seconds_of(module("nmtkit_cli", ["--help"]), translations))
            timings[1].seconds.append(seconds_of(score, translations))
    header = ("command", "median s", "lowest", "highest")
    rows = [
        (
            timing.command,
            f"{median(timing.seconds):.3f}",
            f"{min(timing.seconds):.3f}",
            f"{max(timing.seconds):.3f}",
        )
        for timing in timings
    ]
    print_table([header, *rows])
    print_json([asdict(timing) for timing in timings])


def seconds_of(command: list[str], stdin: Path) -> float:
    """Return the seconds of a command that reads a file."""
    with stdin.open() as stream:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdin=stream, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def write_text(translations: Path, reference: Path) -> None:
    """Write random lines and references that share most words."""
    generator = random.Random(1)
    words = [f"word{number}" for number in range(NUM_WORDS)]
    with translations.open("w") as ours, reference.open("w") as theirs:
        for _ in range(NUM_LINES):
            line = generator.choices(words, k=generator.randint(*LINE_WORDS))
            other = [w if generator.random() < COPIED else generator.choice(words) for w in line]
            ours.write(" ".join(line) + "\n")
            theirs.write(" ".join(other) + "\n")


if __name__ == "__main__":
    main()
