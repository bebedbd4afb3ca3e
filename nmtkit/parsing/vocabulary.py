"""The vocabulary of parses: brackets with labels, and tags. A line of text is a tree in brackets.

It is closed, as the labels of a treebank are: about a hundred entries, each of which is a step of
decoding. Trees lack their words here, which are the source; `TextCodec.complete` puts them back.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from nmtkit.errors import DataError
from nmtkit.parsing.linearize import ANY_TAG, is_closing, is_opening, linearize
from nmtkit.parsing.trees import Tree, parse_tree, split_words
from nmtkit.text.words import Words


class TreeTokens:
    """Tokens of trees and their ids.

    A word of a tree is its tag, or `XX` where the vocabulary lacks the tag and has `XX`.
    """

    kind = "trees"
    suffix = ".txt"
    unknown_ids = Words.unknown_ids

    def __init__(self, words: Words) -> None:
        """Take the list of tokens."""
        self._words = words
        self.size = words.size
        self._tags = {
            token
            for token in map(words.piece, range(words.size))
            if not is_opening(token) and not is_closing(token)
        }

    @staticmethod
    def count(trees: Iterable[Tree], keeps_tags: bool) -> "TreeTokens":
        """Take all tokens of trees, the most frequent first.

        Args:
            trees: all of them counted.
            keeps_tags: tags are tokens; else `XX` stands for all of them.

        Raises:
            DataError: there are no trees.
        """
        counts = Counter(token for tree in trees for token in linearize(tree, keeps_tags))
        if not counts:
            raise DataError("no tree in the training text; give trees in brackets, one a line")
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return TreeTokens(Words([token for token in ranked if Words.can_hold(token)]))

    @staticmethod
    def load(path: Path) -> "TreeTokens":
        """Read a list of tokens, as `Words.load` does.

        Raises:
            ConfigError, DataError: see there.
        """
        return TreeTokens(Words.load(path))

    @property
    def data(self) -> bytes:
        """The bytes of the file that `save` writes."""
        return self._words.data

    def save(self, path: Path) -> None:
        """Write the tokens, special symbols first."""
        self._words.save(path)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a tree in brackets, without special symbols; a blank line has none.

        Raises:
            DataError: the line is no tree.
        """
        return self._words.encode(self.normalise(line))

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Return no symbol, and the line: nothing in it is meant for the whole of it."""
        return "", line

    def decode(self, ids: Sequence[int]) -> str:
        """Return the tokens of ids joined by one space, begin and end symbols skipped."""
        return self._words.decode(ids)

    def normalise(self, line: str) -> str:
        """Return the tokens of a tree in brackets.

        Raises:
            DataError: the line is no tree.
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

    def words(self, ids: Sequence[int]) -> list[int]:
        """Number the tokens of ids."""
        return self._words.words(ids)

    def _tag(self, tag: str) -> str:
        return ANY_TAG if tag not in self._tags and ANY_TAG in self._tags else tag
