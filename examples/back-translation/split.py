"""Split parallel text into fewer pairs, and the target side of the others.

    python3 split.py PREFIX -s SOURCE -t TARGET --pairs N --out FOLDER

Writes FOLDER/real.SOURCE and real.TARGET, N pairs drawn at random, and FOLDER/monolingual.TARGET,
the targets of the other pairs. Pairs with an empty side are left out.
"""

import argparse
import random
import sys
from collections.abc import Iterable
from pathlib import Path

from nmtkit.errors import DataError, NmtkitError
from nmtkit.text.lines import read_pair, resolve

SEED = 1


def main() -> int:
    """Write the text; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("prefix", metavar="PREFIX", help="PREFIX.SOURCE and PREFIX.TARGET (or .gz)")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--pairs", type=int, required=True, metavar="N")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    arguments = parser.parse_args()
    languages = arguments.source_lang, arguments.target_lang
    try:
        paths = [resolve(arguments.prefix, language) for language in languages]
        pairs = [pair for pair in read_pair(*paths) if all(side.strip() for side in pair)]
        num_others = len(pairs) - arguments.pairs
        if min(arguments.pairs, num_others) < 1:
            raise DataError(
                f"{arguments.prefix}: {len(pairs)} pairs without empty sides, so --pairs must be "
                f"from 1 to {len(pairs) - 1}, not {arguments.pairs} (make: PAIRS=)"
            )
    except NmtkitError as error:
        say(f"error: {error}")
        return error.exit_code
    random.Random(SEED).shuffle(pairs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    real, others = pairs[: arguments.pairs], pairs[arguments.pairs :]
    for side, language in enumerate(languages):
        write((pair[side] for pair in real), arguments.out / f"real.{language}")
    target = languages[1]
    write((pair[1] for pair in others), arguments.out / f"monolingual.{target}")
    say(f"{len(real)} pairs, and {num_others} lines of {target}")
    return 0


def write(lines: Iterable[str], path: Path) -> None:
    """Write lines to a file."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def say(message: str) -> None:
    """Print a message to stderr."""
    sys.stderr.write(f"split: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
