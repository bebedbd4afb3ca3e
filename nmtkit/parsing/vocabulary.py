"""The vocabulary of linearised trees, brackets with labels and tags, and the text to learn it from.

A line of that text is a tree in brackets. The vocabulary is closed, as the labels of a treebank
are: about a hundred entries, and each token is one step of decoding. The tokens do not contain the
words, which are the source; `TextCodec.complete` inserts them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from nmtkit.errors import DataError
from nmtkit.parsing.linearize import (
    ANY_TAG,
    complete,
    is_closing,
    is_opening,
    linearize,
    summarize_repairs,
)
from nmtkit.parsing.trees import Tree, parse_tree, split_words
from nmtkit.progress.counting import WorkReporter
from nmtkit.symbols import SPECIAL_WORDS
from nmtkit.text.closed_words import Words
from nmtkit.text.corpus import Corpus
from nmtkit.text.lines import TOO_LONG


class TreeTokens(Words):
    """Tokens of linearised trees and their ids; a line is a tree in brackets.

    A word becomes its tag, or `XX` if the vocabulary has no such tag but has `XX`.
    """

    kind = "trees"
    target_type = "trees"
    is_preparable = False
    no_export = "the words of the source, which belong in the trees, cannot be put there"
    linearization = "brackets"

    def __init__(self, tokens: Sequence[str]) -> None:
        """Store tokens in the order of their ids, which begin after the three special symbols."""
        super().__init__(tokens)
        tags = {token for token in tokens if not is_opening(token) and not is_closing(token)}
        self.segmentation = "tagged-trees" if tags - {ANY_TAG} else "trees"
        self._tags = tags.union(SPECIAL_WORDS)

    @classmethod
    def of_trees(cls, trees: Iterable[Tree], keeps_tags: bool) -> Self:
        """Return the vocabulary of all tokens of trees, the most frequent first.

        Args:
            trees: read once.
            keeps_tags: tags are tokens; otherwise `XX` replaces all tags.

        Raises:
            DataError: there are no trees.
        """
        counts = Counter(
            token for tree in trees for token in linearize(tree, keeps_tags, cls.linearization)
        )
        if not counts:
            raise DataError("no tree in the training text; give trees in brackets, one per line")
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return cls([token for token in ranked if Words.is_valid_entry(token)])

    @staticmethod
    def check(corpora: Sequence[Corpus]) -> None:
        """Check all trees first, as later errors name no file and line; see `read_parses`."""
        for _ in read_parses(corpora):
            pass

    def complete(self, text: str, source_line: str) -> tuple[str, bool | None]:
        """Return the tree of a line of tokens and the source's words; see `linearize.complete`."""
        return complete(self.linearization, text, source_line)

    summarize = staticmethod(summarize_repairs)

    def _encode(self, line: str) -> list[int]:
        return super()._encode(self._normalize(line))

    def _normalize(self, line: str) -> str:
        """Return the tokens of a tree in brackets, separated by spaces; "" for a blank line.

        Raises:
            DataError: the line is not a tree.
        """
        if not split_words(line):
            return ""
        tokens = linearize(parse_tree(line, "tree"), True, self.linearization)
        return " ".join(
            token if is_opening(token) or is_closing(token) else self._tag(token)
            for token in tokens
        )

    def _tag(self, tag: str) -> str:
        return ANY_TAG if tag not in self._tags and ANY_TAG in self._tags else tag


class InOrderTokens(TreeTokens):
    """The same tokens, in the order of the in-order linearisation."""

    kind = "in-order-trees"
    linearization = "in-order"

    def __init__(self, tokens: Sequence[str]) -> None:
        """See `TreeTokens`."""
        super().__init__(tokens)
        self.segmentation = f"{self.linearization} {self.segmentation}"


TREE_VOCABULARIES: dict[str, type[TreeTokens]] = {
    "brackets": TreeTokens,
    "in-order": InOrderTokens,
}
"""Vocabularies by linearisation."""


def learn_tree_tokens(
    keeps_tags: bool, linearization: str, corpora: Sequence[Corpus], reporter: WorkReporter
) -> TreeTokens:
    """Learn the vocabulary of the target; see `TreeTokens.of_trees` and `read_parses`."""
    reporter.message("counting the labels of the target's trees")
    with reporter.track(read_parses(corpora), "read", "trees") as trees:
        return TREE_VOCABULARIES[linearization].of_trees(trees, keeps_tags)


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
                num_leaves, num_words = len(tree.words()), len(split_words(source))
                if num_leaves != num_words:
                    raise DataError(
                        f"{corpus.target}:{number}: the tree has {num_leaves} words, but "
                        f"{corpus.source}:{number} has {num_words}; make the source from the trees "
                        "with `nmtkit trees words`"
                    )
                yield tree
