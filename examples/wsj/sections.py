"""Sections of the Penn Treebank's Wall Street Journal as clean trees, one a line.

    python3 -m examples.wsj.sections TREEBANK 02-21 --trees 39832 > train.trees

TREEBANK is a folder whose folders 00 to 24 hold files .mrg, as parsed/mrg/wsj of LDC99T42 does. The
trees are counted: whoever has all of them, and none twice, has the treebank that papers speak of.
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
    """Read the command line, write trees, and return the exit code."""
    parser = argparse.ArgumentParser(description="Sections of a treebank, one clean tree a line.")
    parser.add_argument("treebank", type=Path, metavar="TREEBANK", help="folder of the sections")
    parser.add_argument("sections", metavar="SECTIONS", help="such as 23, or 02-21")
    parser.add_argument("--trees", type=int, required=True, help="how many there must be")
    arguments = parser.parse_args()
    try:
        for line in section_lines(arguments.treebank, arguments.sections, arguments.trees):
            sys.stdout.write(f"{line}\n")
    except NmtkitError as error:
        say(f"error: {error}")
        return error.exit_code
    return 0


def section_lines(treebank: Path, sections: str, num_trees: int) -> Iterator[str]:
    """Yield the trees of sections, cleaned, in the order of the sections and of the files' names.

    Args:
        treebank: folder of the sections' folders, which are named by two digits.
        sections: one, such as 23, or the first and the last, such as 02-21.
        num_trees: how many trees there must be.

    Raises:
        ConfigError: `sections` names none, or their folders or files are not there.
        DataError: a malformed tree, or, after the last one, another number of trees.
    """
    files = chain.from_iterable(
        section_files(treebank, f"{number:02}") for number in numbers_of(sections)
    )
    trees = chain.from_iterable(read_trees(read_lines(file), str(file), None) for file in files)
    yield from counted(map(format_tree, clean_all(trees, say)), treebank, sections, num_trees)


def numbers_of(sections: str) -> range:
    """Return the numbers of sections such as 23, or 02-21.

    Raises:
        ConfigError: it is neither.
    """
    match = re.fullmatch(r"(\d\d)(?:-(\d\d))?", sections)
    numbers = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not numbers:
        raise ConfigError(
            f"sections '{sections}': none; name one such as 23, or some such as 02-21"
        )
    return numbers


def section_files(treebank: Path, section: str) -> list[Path]:
    """Return the files of a section, in the order of their names.

    Raises:
        ConfigError: it has none.
    """
    folder = treebank / section
    # The treebank's own disc spells names in capitals.
    files = sorted(file for file in folder.glob("*") if file.suffix.lower() == SUFFIX)
    if not files:
        raise ConfigError(
            f"{folder}: no files {SUFFIX}; name the folder of the sections, which in LDC99T42 is "
            "parsed/mrg/wsj (make: TREEBANK=)"
        )
    return files


def counted(lines: Iterable[str], treebank: Path, sections: str, num_trees: int) -> Iterator[str]:
    """Yield lines, then see whether there were so many.

    Raises:
        DataError: there were not.
    """
    number = 0
    for line in lines:
        yield line
        number += 1
    if number != num_trees:
        raise DataError(
            f"{treebank}: sections {sections} hold {number:,} trees, not {num_trees:,}; take "
            f"Treebank-3 (LDC99T42) as it is, or, of another treebank, say --trees {number} "
            "(make: TRAIN_TREES=, VALID_TREES=, TEST_TREES=)"
        )


def say(message: str) -> None:
    """Tell the user something."""
    sys.stderr.write(f"sections: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
