"""The commands of `nmtkit trees`, in the order of use: trees or lines in, a line a tree out."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit_cli.command import FILE, Command
from nmtkit_cli.streams import counted, say, standard_input, warn, write_lines

if TYPE_CHECKING:
    from nmtkit.parsing.trees import Tree

NAME = "standard input"

_LINES_AT_ONCE = 1000

skip_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--skip-bad",
    is_flag=True,
    help="Leave malformed trees out, and tell how many there are, instead of ending at the first.",
)


@click.command("clean", cls=Command, epilog="nmtkit trees clean < wsj.mrg > train.trees")
@skip_option
def clean(skip_bad: bool) -> None:
    """Remove traces, function tags and emptied constituents; name the outer bracket TOP.

    NP-SBJ-1 and NP=2 become NP, as EVALB counts them.
    """
    from nmtkit.parsing.treebank import clean_all
    from nmtkit.parsing.trees import format_tree

    stream_lines(map(format_tree, clean_all(input_trees(skip_bad), warn)))


@click.command("words", cls=Command, epilog="nmtkit trees words < train.trees > train.words")
@skip_option
def words(skip_bad: bool) -> None:
    """Write the words of trees, which are the source of a parser."""
    stream_lines(" ".join(tree.words()) for tree in input_trees(skip_bad))


@click.command("linearize", cls=Command, epilog="nmtkit trees linearize < train.trees > train.lin")
@click.option("--tags", is_flag=True, help="Keep tags of words, instead of XX for all of them.")
@skip_option
def linearize(tags: bool, skip_bad: bool) -> None:
    """Write trees as tokens: (S (NP XX )NP (VP XX )VP )S, without their words.

    preprocess with --target-segmentation trees does so by itself. This is for other vocabularies,
    such as one of subwords that both sides share.
    """
    from nmtkit.parsing.linearize import linearize

    stream_lines(" ".join(linearize(tree, tags)) for tree in input_trees(skip_bad))


@click.command("restore", cls=Command, epilog="nmtkit trees restore --words test.words < test.lin")
@click.option(
    "--words", type=FILE, metavar="FILE", required=True, help="The words of each line's tree."
)
def restore(words: Path) -> None:
    """Write the trees of tokens, with their words in them; the inverse of linearize.

    Whatever the tokens are, a line out is a tree of just the words of that line: brackets that are
    missing are added, those that are too many are dropped, and so on. How many trees were mended
    is told.
    """
    from nmtkit.parsing.linearize import restore_lines
    from nmtkit.text.lines import pair_lines, read_lines

    pairs = pair_lines(input_lines(), read_lines(words), (NAME, str(words)))
    stream_lines(restore_lines(pairs, say))


@click.command("tokenize", cls=Command, epilog="nmtkit trees tokenize < test.txt > test.words")
def tokenize() -> None:
    """Cut raw English text, a sentence a line, into words as the Penn Treebank does."""
    from nmtkit.parsing.treebank import tokenize

    stream_lines(" ".join(tokenize(line)) for line in input_lines())


@click.command("info", cls=Command, epilog="nmtkit trees info < train.trees")
@skip_option
def info(skip_bad: bool) -> None:
    """Count trees, words, constituents, labels and tags."""
    from nmtkit.parsing.views import tree_counts

    stream_lines(tree_counts(input_trees(skip_bad)))


@click.command("draw", cls=Command, epilog="nmtkit trees draw --svg < test.trees > test.svg")
@click.option(
    "--svg", "is_svg", is_flag=True, help="One SVG picture of all trees instead of outlines."
)
@skip_option
def draw(is_svg: bool, skip_bad: bool) -> None:
    """Draw trees: as outlines for the terminal, each with a blank line behind, or as SVG."""
    from nmtkit.parsing.views import outline, svg

    trees = input_trees(skip_bad)
    if is_svg:
        stream_lines([svg(trees)])
    else:
        stream_lines(line for tree in trees for line in (*outline(tree), ""))


def input_lines() -> Iterator[str]:
    """Return the lines of standard input."""
    from nmtkit.text.lines import decode_lines

    return decode_lines(standard_input(), NAME, "error", warn)


def input_trees(skip_bad: bool) -> "Iterator[Tree]":
    """Yield the trees of standard input; warn of those that are left out."""
    from nmtkit.parsing.trees import read_trees

    skipped: list[str] = []
    yield from read_trees(input_lines(), NAME, skipped.append if skip_bad else None)
    if skipped:
        warn(f"left out {counted(len(skipped), 'malformed trees')}; the first: {skipped[0]}")


def stream_lines(lines: Iterable[str]) -> None:
    """Write lines as they come, many at once."""
    from nmtkit.text.lines import numbered_chunks

    for _, chunk in numbered_chunks(lines, _LINES_AT_ONCE):
        write_lines(chunk)
