"""The vocabulary of linearised trees, brackets with labels and tags, and the text to learn it from.

A line of that text is a tree in brackets. The vocabulary is closed, as the labels of a treebank
are: about a hundred entries, and each token is one step of decoding. The tokens do not contain the
words, which are the source; `TextCodec.complete` inserts them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nmtkit.errors import DataError
from nmtkit.parsing.linearize import ANY_TAG, is_closing, is_opening, linearize
from nmtkit.parsing.trees import Tree, parse_tree, split_words
from nmtkit.progress.counting import WorkReporter
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.corpus import Corpus
from nmtkit.text.lines import TOO_LONG
from nmtkit.text.words import Words


class TreeTokens:
    """Tokens of linearised trees and their ids.

    A word becomes its tag, or `XX` if the vocabulary has no such tag but has `XX`.
    """

    kind = "trees"
    suffix = ".txt"
    unknown_ids = Words.unknown_ids

    def __init__(self, words: Words) -> None:
        """Store the list of tokens."""
        self._words = words
        self.size = words.size
        self._tags = {
            token
            for token in map(words.piece, range(words.size))
            if not is_opening(token) and not is_closing(token)
        }

    @staticmethod
    def count(trees: Iterable[Tree], keeps_tags: bool) -> "TreeTokens":
        """Return the vocabulary of all tokens of trees, the most frequent first.

        Args:
            trees: read once.
            keeps_tags: tags are tokens; otherwise `XX` replaces all tags.

        Raises:
            DataError: there are no trees.
        """
        counts = Counter(token for tree in trees for token in linearize(tree, keeps_tags))
        if not counts:
            raise DataError("no tree in the training text; give trees in brackets, one per line")
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return TreeTokens(Words([token for token in ranked if Words.is_valid_entry(token)]))

    @staticmethod
    def load(path: Path) -> "TreeTokens":
        """Read a list of tokens from a file.

        Raises:
            ConfigError, DataError: see `Words.load`.
        """
        return TreeTokens(Words.load(path))

    @property
    def segmentation(self) -> str:
        """Name of the segmentation: with or without tags of words."""
        known = {ANY_TAG, *map(self.piece, (UNK_ID, BOS_ID, EOS_ID))}
        return "tagged-trees" if self._tags - known else "trees"

    @property
    def data(self) -> bytes:
        """The contents of the file that `save` writes."""
        return self._words.data

    def save(self, path: Path) -> None:
        """Write the tokens, special symbols first."""
        self._words.save(path)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a tree in brackets, without special symbols; [] for a blank line.

        Raises:
            DataError: the line is not a tree.
        """
        return self._words.encode(self.normalize(line))

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Return "" and the line: trees have no symbol for the whole line."""
        return "", line

    def decode(self, ids: Sequence[int]) -> str:
        """Return the tokens of ids, separated by spaces, without begin and end symbols."""
        return self._words.decode(ids)

    def normalize(self, line: str) -> str:
        """Return the tokens of a tree in brackets, separated by spaces; "" for a blank line.

        Raises:
            DataError: the line is not a tree.
        """
        if not split_words(line):
            return ""
        tokens = linearize(parse_tree(line, "tree"), keeps_tags=True)
        return " ".join(
            token if is_opening(token) or is_closing(token) else self._tag(token)
            for token in tokens
        )

    def piece(self, index: int) -> str:
        """Return the token of an id."""
        return self._words.piece(index)

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        """Return the index of each token, as each is one word."""
        return self._words.word_indices(ids)

    def _tag(self, tag: str) -> str:
        return ANY_TAG if tag not in self._tags and ANY_TAG in self._tags else tag


def learn_tree_tokens(
    keeps_tags: bool, corpora: Sequence[Corpus], reporter: WorkReporter
) -> TreeTokens:
    """Learn the vocabulary of the target; see `TreeTokens.count` and `read_parses`."""
    reporter.message("counting the labels of the target's trees")
    with reporter.track(read_parses(corpora), "read", "trees") as trees:
        return TreeTokens.count(trees, keeps_tags)


def read_parses(corpora: Sequence[Corpus]) -> Iterator[Tree]:
    """Yield the trees of the target, which are parses of the source.

    Blank lines and lines that are too long are skipped.

    Raises:
        DataError: a line is not a tree, or it has another number of words than the source line.
    """
    for corpus in corpora:
        for number, (source, target) in enumerate(corpus.pairs(), 1):
            if split_words(target) and source != TOO_LONG:
                tree = parse_tree(target, f"{corpus.target}:{number}")
                _check_words(corpus, number, len(split_words(source)), len(tree.words()))
                yield tree


def check_parses(corpora: Sequence[Corpus]) -> None:
    """Check all trees first, as later errors name no file and line; see `read_parses`."""
    for _ in read_parses(corpora):
        pass


def _check_words(corpus: Corpus, number: int, num_source: int, num_tree: int) -> None:
    if num_source != num_tree:
        raise DataError(
            f"{corpus.target}:{number}: the tree has {num_tree} words, but "
            f"{corpus.source}:{number} has {num_source}; make the source from the trees with "
            "`nmtkit trees words`"
        )
