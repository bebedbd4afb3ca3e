"""Time of short commands: nmtkit --help, and nmtkit score of 3 000 lines.

python -m benchmarks.startup
"""

import argparse
import random
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.common import module, print_json, print_table

NUM_LINES = 3000
LINE_WORDS = (5, 40)
NUM_WORDS = 5000
COPIED = 0.7
"""Fraction of the words that translation and reference share."""


def main() -> None:
    """Run the commands interleaved and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each command")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        translations, reference = Path(folder) / "translations", Path(folder) / "reference"
        write_text(translations, reference)
        score = module("nmtkit_cli", ["score", "--reference", reference])
        commands = {
            "nmtkit --help": module("nmtkit_cli", ["--help"]),
            f"nmtkit score, {NUM_LINES} lines": score,
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                seconds[name].append(seconds_of(command, translations))
    rows = [
        (name, *(f"{of(times):.3f}" for of in (median, min, max)))
        for name, times in seconds.items()
    ]
    print_table([("command", "median s", "lowest", "highest"), *rows])
    print_json(seconds)


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
