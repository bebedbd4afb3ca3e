"""Of the n best translations of each line, write the one that is closest to the reference.

    python3 closest.py N_BEST REFERENCE > CLOSEST

N_BEST has JSON lines of `nmtkit translate --n-best N --output-format json`. The closest one has the
best BLEU of a single sentence; of equal ones, the most probable. Source: Kim and Rush 2016,
https://arxiv.org/abs/1606.07947, section 3.3, sequence-level interpolation.
"""

import argparse
import json
import sys
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from nmtkit.errors import DataError, NmtkitError
from nmtkit.text.lines import read_pair


def main() -> int:
    """Write the translations; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("n_best", type=Path, metavar="N_BEST")
    parser.add_argument("reference", type=Path, metavar="REFERENCE")
    arguments = parser.parse_args()
    bleu = BLEU(effective_order=True)
    try:
        lines = read_pair(arguments.n_best, arguments.reference)
        for number, (line, reference) in enumerate(lines, 1):
            candidates = texts_of(line, f"{arguments.n_best}:{number}")
            scores = [bleu.sentence_score(text, [reference]).score for text in candidates]
            sys.stdout.write(f"{candidates[scores.index(max(scores))]}\n")
    except NmtkitError as error:
        sys.stderr.write(f"closest: error: {error}\n")
        return error.exit_code
    return 0


def texts_of(line: str, place: str) -> list[str]:
    """Return the translations in a JSON line, best first; DataError if it has none."""
    try:
        return [str(one["translation"]) for one in json.loads(line)["n_best"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{place}: no n best translations; write them with `nmtkit translate --n-best 8 "
            "--output-format json`"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
