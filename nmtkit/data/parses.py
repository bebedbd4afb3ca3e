"""Training text whose target side is parses of the source: every tree is looked at before any work.

Later, a tree that is malformed could be told without its file and line only.
"""

from collections.abc import Iterator, Sequence

from nmtkit.data.corpus import Corpus
from nmtkit.errors import DataError
from nmtkit.parsing.trees import Tree, parse_tree, split_words


def read_parses(corpora: Sequence[Corpus]) -> Iterator[Tree]:
    """Yield the trees of the target side; blank lines have none.

    Raises:
        DataError: a line is no tree, or not one of so many words as the source line has.
    """
    for corpus in corpora:
        for number, (source, target) in enumerate(corpus.pairs(), 1):
            if split_words(target):
                tree = parse_tree(target, f"{corpus.target}:{number}")
                _check_words(corpus, number, len(split_words(source)), len(tree.words()))
                yield tree


def check_parses(corpora: Sequence[Corpus]) -> None:
    """Read all trees; see `read_parses`."""
    for _ in read_parses(corpora):
        pass


def _check_words(corpus: Corpus, number: int, num_source: int, num_tree: int) -> None:
    if num_source != num_tree:
        raise DataError(
            f"{corpus.target}:{number}: a parse of {num_tree} words, and {corpus.source}:{number} "
            f"has {num_source}; make the source of the trees, with `nmtkit trees words`"
        )
