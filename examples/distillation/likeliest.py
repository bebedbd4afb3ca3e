"""Write the pairs whose source is likeliest, given the translation, in their order.

    python3 likeliest.py LOG_PROBS SOURCE TRANSLATION --keep 0.9 --out KEPT_SOURCE KEPT_TRANSLATION

LOG_PROBS has the lines of `nmtkit score --model BACKWARD --source TRANSLATION SOURCE`: the
log-probability of a source, a tab, and its number of tokens. Pairs are ordered by log-probability
per token, because sums prefer short sentences. Source: Junczys-Dowmunt 2018,
https://arxiv.org/abs/1809.00197, filters by the likelihoods of both directions; here the forward
model wrote the translations itself.
"""

import argparse
import math
import sys
from pathlib import Path

from nmtkit.errors import DataError, NmtkitError
from nmtkit.text.lines import read_lines, read_pair


def main() -> int:
    """Write the kept pairs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("log_probs", "source", "translation"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    parser.add_argument("--keep", type=float, default=0.9, help="share of the pairs to keep")
    parser.add_argument("--out", type=Path, nargs=2, required=True)
    arguments = parser.parse_args()
    if not 0 < arguments.keep <= 1:
        parser.error("--keep must be above 0 and at most 1")
    try:
        pairs = list(read_pair(arguments.source, arguments.translation))
        values = log_probs_per_token(arguments.log_probs)
        if len(values) != len(pairs):
            raise DataError(
                f"{arguments.log_probs} has {len(values)} lines, and {arguments.source} has "
                f"{len(pairs)}; score these files"
            )
        kept = indices_of_largest(values, math.ceil(arguments.keep * len(pairs)))
        for side, path in enumerate(arguments.out):
            whole = path.with_name(f"{path.name}.new")
            whole.write_text("".join(f"{pairs[index][side]}\n" for index in kept), "utf-8")
            whole.replace(path)  # another file, where the old one may have a second name
    except NmtkitError as error:
        sys.stderr.write(f"likeliest: error: {error}\n")
        return error.exit_code
    return 0


def log_probs_per_token(path: Path) -> list[float]:
    """Read log-probabilities per token; DataError for other lines."""
    values = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            log_prob, num_tokens = map(float, line.split("\t"))
        except ValueError as error:
            raise DataError(
                f"{path}:{number}: no log-probability, tab and number of tokens; write them with "
                "`nmtkit score --model`"
            ) from error
        values.append(log_prob / max(num_tokens, 1))
    return values


def indices_of_largest(values: list[float], count: int) -> list[int]:
    """Return the indices of the largest values, ascending; of equal values, the first."""
    order = sorted(range(len(values)), key=lambda index: (-values[index], index))
    return sorted(order[:count])


if __name__ == "__main__":
    sys.exit(main())
