"""Combine the links of an aligner's two directions by grow-diag, as `nmtkit align` does.

    python3 symmetrize.py FORWARD REVERSE > LINKS

Both files have a line per pair with links `0-0 1-2` of a source and a target word.
"""

import sys
from pathlib import Path

from nmtkit.decoding.symmetrize import grow_diag
from nmtkit.errors import DataError, NmtkitError
from nmtkit.text.lines import read_pair
from nmtkit.text.links import Link, in_order, parse_links


def main() -> int:
    """Print the combined links of each pair; return the exit code."""
    paths = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        for number, lines in enumerate(read_pair(*paths), 1):
            forward, reverse = (_parsed(line, number) for line in lines)
            links = in_order(grow_diag(forward, reverse))
            sys.stdout.write(" ".join(f"{one}-{other}" for one, other in links) + "\n")
    except NmtkitError as error:
        sys.stderr.write(f"symmetrize: error: {error}\n")
        return error.exit_code
    return 0


def _parsed(line: str, number: int) -> frozenset[Link]:
    try:
        return parse_links(line).sure
    except DataError as error:
        raise DataError(f"line {number}: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
