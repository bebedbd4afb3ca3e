"""Linearised trees: trees as sequences of tokens, which a model can learn, and back.

Depth-first: `(NP` opens a constituent, `)NP` closes it, and a word becomes its tag, or `XX` if tags
are not learnt, as the score of brackets does not count them. In the in-order linearisation, the
first child of each constituent precedes its opening bracket:

    (TOP (S (NP (PRP He)) (VP (VBZ sleeps))))
    (TOP (S (NP XX )NP (VP XX )VP )S )TOP        brackets
    XX (NP )NP (S XX (VP )VP )S (TOP )TOP        in-order

The tokens do not contain the words, which are the source; `restore` inserts them in order. It makes
a tree with exactly these words from any tokens.

Sources: Vinyals et al. 2015 (arXiv 1412.7449), section 2.3 and footnotes; that paper omits TOP.
In-order: Liu and Zhang 2017 (arXiv 1707.05000); as output of a sequence-to-sequence model,
Fernandez-Gonzalez and Gomez-Rodriguez 2020 (arXiv 2005.13334). There, `XX` is the transition shift,
`(NP` non-terminal, `)NP` reduce, and the end symbol finish.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from nmtkit.parsing.trees import ROOT_LABEL, Tree, escape, format_tree, split_words

ANY_TAG = "XX"
"""Token for a word of any tag."""

IS_CHILD_FIRST = {"brackets": False, "in-order": True}
"""Whether the first child of a constituent precedes its opening bracket, by linearisation."""

_UNKNOWN = "<unk>"


def linearize(tree: Tree, keeps_tags: bool, linearization: str) -> list[str]:
    """Return the tokens of a tree; a word becomes its tag, or `XX` unless `keeps_tags`."""
    is_child_first = IS_CHILD_FIRST[linearization]
    tokens: list[str] = []
    openings: list[str] = []  # of the open constituents, outermost first; "" = written
    for node, is_end in tree.walk():
        is_complete = is_end or node.word is not None
        if is_end:
            tokens.append(f"){node.label}")
            openings.pop()
        elif node.word is not None:
            tokens.append(node.label if keeps_tags else ANY_TAG)
        else:
            openings.append(f"({node.label}")
        if openings and openings[-1] and is_complete == is_child_first:
            tokens.append(openings[-1])
            openings[-1] = ""
    return tokens


def is_opening(token: str) -> bool:
    """Return whether a token opens a constituent."""
    return token.startswith("(")


def is_closing(token: str) -> bool:
    """Return whether a token closes a constituent."""
    return token.startswith(")")


def restore(tokens: Sequence[str], words: Sequence[str], linearization: str) -> Tree:
    """Make a tree from tokens and words; malformed tokens are repaired.

    Well-formed tokens with one tag per word are used unchanged: `linearize` returns them again.
    Repairs:
    - A closing bracket also closes all constituents inside its own; without an open one it is
      dropped.
    - Constituents that are open at the end are closed; those without words are dropped.
    - Surplus tags are dropped; surplus words become the last children of the root.
    - Several roots with the same label are joined; other roots become children of TOP.
    - In-order, an opening bracket without a child before it takes none.

    Args:
        tokens: from a model; each without white space.
        words: at least one; brackets in them are spelled out.
        linearization: of the tokens.

    Returns:
        A tree with exactly these words, in this order.
    """
    assert words, "a tree has a word"
    remaining = [escape(word) for word in reversed(words)]
    builder = _Builder(IS_CHILD_FIRST[linearization])
    for token in tokens:
        if is_opening(token):
            builder.open(escape(token[1:]))
        elif is_closing(token):
            builder.close(escape(token[1:]))
        elif remaining and token != _UNKNOWN:
            builder.add(Tree(escape(token), (), remaining.pop()))
    return builder.finish([Tree(ANY_TAG, (), word) for word in reversed(remaining)])


def restore_lines(
    linearization: str, pairs: Iterable[tuple[str, str]], report: Callable[[str], None]
) -> Iterator[str]:
    """Yield the tree of each line of tokens as text; "" if the line has no words.

    Args:
        linearization: of the tokens.
        pairs: a line of tokens and a line of words each.
        report: receives a line with the numbers of trees and of repaired trees.
    """
    counts: Counter[bool | None] = Counter()
    for text, words in pairs:
        tree, is_repaired = complete(linearization, text, words)
        counts[is_repaired] += 1
        yield tree
    report(_repairs(counts))


def complete(linearization: str, text: str, words: str) -> tuple[str, bool | None]:
    """Return the tree of a line of tokens and a line of words as text, and whether it was repaired.

    Without words, these are "" and None.
    """
    if not split_words(words):
        return "", None
    tokens = text.split()
    tree = restore(tokens, split_words(words), linearization)
    return format_tree(tree), linearize(tree, True, linearization) != tokens


def summarize_repairs(counts: Counter[bool | None]) -> str:
    """Return a line with the number of trees and of repaired ones; "" if there is no tree.

    Args:
        counts: number of outputs by the second value of `complete`.
    """
    return _repairs(counts) if counts[True] or counts[False] else ""


def _repairs(counts: Counter[bool | None]) -> str:
    return f"trees: {counts[True] + counts[False]}, repaired: {counts[True]}"


class _Builder:
    """Builds a tree: a stack of open constituents, outermost first; the first holds the roots."""

    def __init__(self, is_child_first: bool) -> None:
        self._is_child_first = is_child_first
        self._open: list[tuple[str, list[Tree]]] = [("", [])]
        self._num_open: Counter[str] = Counter()

    def open(self, label: str) -> None:
        _, siblings = self._open[-1]
        first = [siblings.pop()] if siblings and self._is_child_first else []
        self._open.append((label, first))
        self._num_open[label] += 1

    def add(self, tree: Tree) -> None:
        _, siblings = self._open[-1]
        siblings.append(tree)

    def close(self, label: str) -> None:
        """Close the innermost constituent with a label, and all that are open inside it."""
        if self._num_open[label]:
            while self._close_innermost() != label:
                pass

    def finish(self, missing: list[Tree]) -> Tree:
        """Close everything and return the tree; `missing` become the last children of the root."""
        while len(self._open) > 1:
            self._close_innermost()
        ((_, roots),) = self._open
        labels = {root.label for root in roots if root.children}
        if len(roots) == 1 and not missing:
            return roots[0]
        if len(labels) != 1:
            return Tree(ROOT_LABEL, (*roots, *missing))
        joined = [child for root in roots for child in root.children or (root,)]
        return Tree(labels.pop(), (*joined, *missing))

    def _close_innermost(self) -> str:
        """Close the innermost constituent, or drop it if it is empty; return its label."""
        label, children = self._open.pop()
        self._num_open[label] -= 1
        if children:
            self.add(Tree(label, tuple(children)))
        return label
