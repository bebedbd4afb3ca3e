"""Trees whose tags are the words, where these are frequent: they tell a decoder where it is.

    python3 -m examples.wsj.anchors train.trees < valid.trees > anchored.trees

A decoder that puts out tags has to find the next word from the tags before it, which takes many
updates to learn. To find the word after one that it has just put out takes few, as in translation.
Scores of brackets do not see what stands for a tag.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nmtkit.errors import NmtkitError
from nmtkit.text.lines import read_lines
from nmtkit.text.trees import Tree, format_tree, read_trees

MIN_COUNT = 30
"""Rarer words keep their tags: too few occurrences to learn an entry of the vocabulary from."""


def main() -> int:
    """Read the command line and trees, write trees, and return the exit code."""
    parser = argparse.ArgumentParser(description="Words for tags, where they are frequent.")
    parser.add_argument("counted", type=Path, metavar="TREES", help="trees whose words are counted")
    arguments = parser.parse_args()
    try:
        counted = read_trees(read_lines(arguments.counted), str(arguments.counted), None)
        words = frequent_words(counted, MIN_COUNT)
        lines = (line.rstrip("\n") for line in sys.stdin)
        for tree in read_trees(lines, "standard input", None):
            sys.stdout.write(f"{format_tree(anchored(tree, words))}\n")
    except NmtkitError as error:
        sys.stderr.write(f"anchors: error: {error}\n")
        return error.exit_code
    return 0


def frequent_words(trees: Iterable[Tree], min_count: int) -> set[str]:
    """Return the words, in lower case, that occur so often in trees."""
    counts = Counter(word.lower() for tree in trees for word in tree.words())
    return {word for word, count in counts.items() if count >= min_count}


def anchored(tree: Tree, words: set[str]) -> Tree:
    """Return a tree in which some words, in lower case, stand for their own tags."""
    if tree.word is not None:
        word = tree.word.lower()
        return replace(tree, label=word) if word in words else tree
    return replace(tree, children=tuple(anchored(child, words) for child in tree.children))


if __name__ == "__main__":
    sys.exit(main())
