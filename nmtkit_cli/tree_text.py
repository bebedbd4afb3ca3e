"""The commands of `nmtkit trees` that turn text into other text, a tree or its words a line."""

from pathlib import Path

import click

from nmtkit_cli.command import FILE, Command
from nmtkit_cli.streams import say, warn
from nmtkit_cli.tree_streams import NAME, input_lines, input_trees, skip_option, stream_lines


@click.command("clean", cls=Command, epilog="nmtkit trees clean < wsj.mrg > train.trees")
@skip_option
def clean(skip_bad: bool) -> None:
    """Remove traces, function tags and emptied constituents; name the outer bracket TOP.

    NP-SBJ-1 and NP=2 become NP, as EVALB counts them.
    """
    from nmtkit.parsing.cleaning import clean_all
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
