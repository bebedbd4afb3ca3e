"""Words and trees with the number of each word, by which a decoder finds the next word.

    python3 -m examples.wsj.numbered words test.words > numbered.words
    python3 -m examples.wsj.numbered trees train.trees > numbered.trees

A decoder of trees first has to learn which word comes next. From tags alone it would have to count
its output. Here the source has a mark of each word's number before the word, and the tree has the
mark in place of the word's tag. So the decoder finds the next mark by its content, as in
translation. Bracket scores ignore tags.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from nmtkit.errors import NmtkitError
from nmtkit.parsing.linearize import is_closing, is_opening, linearize, restore
from nmtkit.parsing.trees import Tree, format_tree, read_trees, split_words
from nmtkit.text.lines import read_lines

NUM_MARKS = 80
"""After this number of words the marks repeat; few sentences are longer."""

FIRST_MARK = 0x4E00
"""The code point of mark 0, the first CJK ideograph. SentencePiece never joins letters of different
scripts, so a mark before a Latin word is a separate piece."""


def main() -> int:
    """Print a file with numbered words; return the exit code."""
    parser = argparse.ArgumentParser(description="Words, or trees, with the numbers of words.")
    parser.add_argument("kind", choices=sorted(KINDS), help="content of the file, one per line")
    parser.add_argument("path", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    try:
        for line in KINDS[arguments.kind](arguments.path):
            sys.stdout.buffer.write(f"{line}\n".encode())
    except NmtkitError as error:
        sys.stderr.write(f"numbered: error: {error}\n")
        return error.exit_code
    return 0


def numbered_words(line: str) -> str:
    """Return a line of words, each with the mark of its number in front."""
    return " ".join(mark + word for mark, word in zip(marks(), split_words(line), strict=False))


def numbered_tree(tree: Tree) -> Tree:
    """Return a tree in which the mark of each word's number replaces its tag."""
    tags = marks()
    tokens = [
        token if is_opening(token) or is_closing(token) else next(tags)
        for token in linearize(tree, False, "brackets")
    ]
    return restore(tokens, tree.words(), "brackets")


def marks() -> Iterator[str]:
    """Yield the marks of 0, 1, 2 and so on, endlessly."""
    return (chr(FIRST_MARK + number % NUM_MARKS) for number in count())


def _lines_of_words(path: Path) -> Iterator[str]:
    return map(numbered_words, read_lines(path))


def _lines_of_trees(path: Path) -> Iterator[str]:
    return (
        format_tree(numbered_tree(tree)) for tree in read_trees(read_lines(path), str(path), None)
    )


KINDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "words": _lines_of_words,
    "trees": _lines_of_trees,
}


if __name__ == "__main__":
    sys.exit(main())
