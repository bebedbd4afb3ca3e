"""Sections of the Penn Treebank's Wall Street Journal as clean trees, one per line.

    python3 -m examples.wsj.sections TREEBANK 02-21 --trees 39832 > train.trees

TREEBANK is a folder whose folders 00 to 24 hold files .mrg, as parsed/mrg/wsj of LDC99T42 does. The
trees are counted, so that missing or repeated files are found.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from nmtkit.errors import ConfigError, DataError, NmtkitError
from nmtkit.parsing.treebank import clean_all
from nmtkit.parsing.trees import format_tree, read_trees
from nmtkit.text.lines import read_lines

SUFFIX = ".mrg"


def main() -> int:
    """Print the trees of the given sections; return the exit code."""
    parser = argparse.ArgumentParser(description="Sections of a treebank, one clean tree per line.")
    parser.add_argument("treebank", type=Path, metavar="TREEBANK", help="folder of the sections")
    parser.add_argument("sections", metavar="SECTIONS", help="such as 23, or 02-21")
    parser.add_argument("--trees", type=int, required=True, help="expected number of trees")
    arguments = parser.parse_args()
    try:
        for line in section_lines(arguments.treebank, arguments.sections, arguments.trees):
            sys.stdout.write(f"{line}\n")
    except NmtkitError as error:
        say(f"error: {error}")
        return error.exit_code
    return 0


def section_lines(treebank: Path, sections: str, num_trees: int) -> Iterator[str]:
    """Yield the cleaned trees of sections, in the order of sections and file names.

    Args:
        treebank: folder with a folder per section, named by two digits.
        sections: a section such as 23, or a range such as 02-21.
        num_trees: expected number of trees.

    Raises:
        ConfigError: `sections` is malformed, or a section has no files.
        DataError: a tree is malformed, or, after the last tree, the number is not `num_trees`.
    """
    files = chain.from_iterable(
        section_files(treebank, f"{number:02}") for number in numbers_of(sections)
    )
    trees = chain.from_iterable(read_trees(read_lines(file), str(file), None) for file in files)
    yield from counted(map(format_tree, clean_all(trees, say)), treebank, sections, num_trees)


def numbers_of(sections: str) -> range:
    """Return the section numbers of a section such as 23 or a range such as 02-21.

    Raises:
        ConfigError: `sections` is neither.
    """
    match = re.fullmatch(r"(\d\d)(?:-(\d\d))?", sections)
    numbers = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not numbers:
        raise ConfigError(
            f"sections '{sections}': not a section or range; give one such as 23 or 02-21"
        )
    return numbers


def section_files(treebank: Path, section: str) -> list[Path]:
    """Return the files of a section, sorted by name.

    Raises:
        ConfigError: the section has no files.
    """
    folder = treebank / section
    # The names on the original disc are in capitals.
    files = sorted(file for file in folder.glob("*") if file.suffix.lower() == SUFFIX)
    if not files:
        raise ConfigError(
            f"{folder}: no files {SUFFIX}; give the folder of the sections, parsed/mrg/wsj in "
            "LDC99T42 (make: TREEBANK=)"
        )
    return files


def counted(lines: Iterable[str], treebank: Path, sections: str, num_trees: int) -> Iterator[str]:
    """Yield lines, then check their number.

    Raises:
        DataError: it is not `num_trees`.
    """
    number = 0
    for line in lines:
        yield line
        number += 1
    if number != num_trees:
        raise DataError(
            f"{treebank}: sections {sections} have {number:,} trees, not {num_trees:,}; use "
            f"Treebank-3 (LDC99T42) unchanged; for another treebank, give --trees {number} "
            "(make: TRAIN_TREES=, VALID_TREES=, TEST_TREES=)"
        )


def say(message: str) -> None:
    """Print a message to stderr."""
    sys.stderr.write(f"sections: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
