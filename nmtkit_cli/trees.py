"""`nmtkit trees`: a group of commands, in the order of use; each writes a line per tree."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nmtkit.config.schema import PreprocessRecipe, fields_of
from nmtkit.units import counted
from nmtkit_cli.command import FILE, HELP_NAMES, Command, Group
from nmtkit_cli.help import setting_help
from nmtkit_cli.streams import say, standard_input, warn, write_lines

if TYPE_CHECKING:
    from nmtkit.parsing.trees import Tree

EXAMPLES = """\
# a treebank as training text of a parser
nmtkit trees clean < wsj.mrg > train.trees
nmtkit trees words < train.trees > train.words

# parse raw text
nmtkit trees tokenize < test.txt | nmtkit translate parser/ > test.trees"""


NAME = "standard input"

_CHUNK_LINES = 1000


@click.group(
    "trees",
    cls=Group,
    epilog=EXAMPLES,
    context_settings={"help_option_names": [*HELP_NAMES, "--help-all"]},
)
def command() -> None:
    """Prepare and restore bracketed trees, from standard input to standard output.

    Input trees take one line or several, as in the Penn Treebank: an opening bracket in the first
    column begins a tree. Output trees take one line each.
    """


skip_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--skip-malformed",
    is_flag=True,
    help="Skip malformed trees and count them, instead of ending at the first one.",
)
_LINEARIZATION = fields_of(PreprocessRecipe)["linearization"]
linearization_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    _LINEARIZATION.flag,
    type=click.Choice([*_LINEARIZATION.choices]),
    default=_LINEARIZATION.default,
    help=setting_help(_LINEARIZATION),
)


@command.command("clean", cls=Command, epilog="nmtkit trees clean < wsj.mrg > train.trees")
@skip_option
def clean(skip_malformed: bool) -> None:
    """Remove traces, function tags and empty constituents; name the outer bracket TOP.

    NP-SBJ-1 and NP=2 become NP, as in EVALB.
    """
    from nmtkit.parsing.treebank import clean_all
    from nmtkit.parsing.trees import format_tree

    stream_lines(map(format_tree, clean_all(input_trees(skip_malformed), warn)))


@command.command("words", cls=Command, epilog="nmtkit trees words < train.trees > train.words")
@skip_option
def words(skip_malformed: bool) -> None:
    """Write the words of trees: the source text of a parser."""
    stream_lines(" ".join(tree.words()) for tree in input_trees(skip_malformed))


@command.command(
    "linearize", cls=Command, epilog="nmtkit trees linearize < train.trees > train.lin"
)
@click.option("--tags", is_flag=True, help="Keep the tags of words instead of XX.")
@linearization_option
@skip_option
def linearize(tags: bool, linearization: str, skip_malformed: bool) -> None:
    """Write linearised trees without words: (S (NP XX )NP (VP XX )VP )S.

    `nmtkit preprocess --target-segmentation trees` does so itself. This command is for other
    vocabularies, such as a joint vocabulary of subwords.
    """
    from nmtkit.parsing.linearize import linearize

    trees = input_trees(skip_malformed)
    stream_lines(" ".join(linearize(tree, tags, linearization)) for tree in trees)


@command.command(
    "restore", cls=Command, epilog="nmtkit trees restore --words test.words < test.lin"
)
@click.option(
    "--words", type=FILE, metavar="FILE", required=True, help="Words of each tree, a line per tree."
)
@linearization_option
def restore(words: Path, linearization: str) -> None:
    """Write trees with their words from linearised trees; the inverse of linearize.

    Each output line is a tree of exactly the words of that line. Malformed trees are repaired:
    missing brackets are added, surplus ones dropped, and so on. Prints the number of repaired
    trees.
    """
    from nmtkit.parsing.linearize import restore_lines
    from nmtkit.text.lines import pair_lines, read_lines

    pairs = pair_lines(input_lines(), read_lines(words), (NAME, str(words)))
    stream_lines(restore_lines(linearization, pairs, say))


@command.command("tokenize", cls=Command, epilog="nmtkit trees tokenize < test.txt > test.words")
def tokenize() -> None:
    """Split raw English text, a sentence per line, into words as in the Penn Treebank."""
    from nmtkit.parsing.treebank import tokenize

    stream_lines(" ".join(tokenize(line)) for line in input_lines())


@command.command("info", cls=Command, epilog="nmtkit trees info < train.trees")
@skip_option
def info(skip_malformed: bool) -> None:
    """Count trees, words, constituents, labels and tags."""
    from nmtkit.parsing.treebank import tree_counts

    stream_lines(tree_counts(input_trees(skip_malformed)))


def input_lines() -> Iterator[str]:
    """Return the lines of standard input."""
    from nmtkit.text.lines import decode_lines

    return decode_lines(standard_input(), NAME)


def input_trees(skip_malformed: bool) -> "Iterator[Tree]":
    """Yield the trees of standard input; warn about skipped ones."""
    from nmtkit.parsing.trees import read_trees

    skipped: list[str] = []
    yield from read_trees(input_lines(), NAME, skipped.append if skip_malformed else None)
    if skipped:
        warn(f"skipped {counted(len(skipped), 'malformed trees')}; the first: {skipped[0]}")


def stream_lines(lines: Iterable[str]) -> None:
    """Write lines as they arrive, in chunks."""
    from nmtkit.text.lines import numbered_chunks

    for _, chunk in numbered_chunks(lines, _CHUNK_LINES, until_error=True):
        write_lines(chunk)
