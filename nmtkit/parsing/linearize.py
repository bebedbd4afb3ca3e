"""Trees as sequences of tokens that a model can put out, and back.

Depth-first: `(NP` opens a constituent, `)NP` closes it, and a word is its tag, or `XX` where tags
are not to be learnt, as the score of brackets does not count them:

    (TOP (S (NP (PRP He)) (VP (VBZ sleeps))))    ->    (TOP (S (NP XX )NP (VP XX )VP )S )TOP

The words are not in it: they are the source, and are put back in their order. That always works:
`restore` makes a tree over just these words of any tokens.

Source: Vinyals et al. 2015 (arXiv 1412.7449), section 2.3 and footnotes; that paper leaves out TOP.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from nmtkit.parsing.treebank import ROOT_LABEL
from nmtkit.parsing.trees import Tree, escape, format_tree, split_words
from nmtkit.units import repaired

ANY_TAG = "XX"
"""Stands for every tag."""

_UNKNOWN = "<unk>"


def linearize(tree: Tree, keeps_tags: bool) -> list[str]:
    """Return the tokens of a tree; a word's is its tag, or `XX`."""
    tokens: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            tokens.append(node)
        elif node.word is not None:
            tokens.append(node.label if keeps_tags else ANY_TAG)
        else:
            tokens.append(f"({node.label}")
            waiting.append(f"){node.label}")
            waiting.extend(reversed(node.children))
    return tokens


def is_opening(token: str) -> bool:
    """Return whether a token opens a constituent."""
    return token.startswith("(")


def is_closing(token: str) -> bool:
    """Return whether a token closes a constituent."""
    return token.startswith(")")


def restore(tokens: Sequence[str], words: Sequence[str]) -> Tree:
    """Make the tree of tokens, with words in it; tokens that are no tree's are repaired.

    Of tokens that are a tree's, with a tag a word, nothing changes: `linearize` gives them back.
    Otherwise a closing bracket closes what is open inside of its constituent, or is dropped where
    none is open; what is open at the end is closed; brackets without a word in them are dropped;
    tags without a word are, too; words without a tag become the root's last children. Several roots
    with one label are joined, and others are put into TOP.

    Args:
        tokens: from a model; each without white space.
        words: at least one; brackets in them are spelled out.

    Returns:
        a tree with just these words, in this order.
    """
    assert words, "a tree has a word"
    remaining = [escape(word) for word in reversed(words)]
    builder = _Builder()
    for token in tokens:
        if is_opening(token):
            builder.open(escape(token[1:]))
        elif is_closing(token):
            builder.close(escape(token[1:]))
        elif remaining and token != _UNKNOWN:
            builder.add(Tree(escape(token), (), remaining.pop()))
    return builder.finish([Tree(ANY_TAG, (), word) for word in reversed(remaining)])


def restore_lines(pairs: Iterable[tuple[str, str]], report: Callable[[str], None]) -> Iterator[str]:
    """Yield the trees of lines of tokens, as text; what has no words is blank.

    Args:
        pairs: a line of tokens, and one of words.
        report: takes a line with the number of trees, and of those that were repaired.
    """
    counts: Counter[bool | None] = Counter()
    for text, words in pairs:
        tree, is_mended = complete(text, words)
        counts[is_mended] += 1
        yield tree
    report(repaired("trees", counts))


def complete(text: str, words: str) -> tuple[str, bool | None]:
    """Return the text of the tree of tokens over a line of words, and whether it was repaired.

    Without words, the text is blank, and the second is None.
    """
    if not split_words(words):
        return "", None
    tree = restore(text.split(), split_words(words))
    return format_tree(tree), linearize(tree, keeps_tags=True) != text.split()


class _Builder:
    """The constituents that are open, outermost first; the first one holds the roots."""

    def __init__(self) -> None:
        self._labels = [""]
        self._children: list[list[Tree]] = [[]]
        self._num_open: Counter[str] = Counter()

    def open(self, label: str) -> None:
        self._labels.append(label)
        self._children.append([])
        self._num_open[label] += 1

    def add(self, tree: Tree) -> None:
        self._children[-1].append(tree)

    def close(self, label: str) -> None:
        """Close the innermost constituent of a label, and what is open in it."""
        if self._num_open[label]:
            while self._close_innermost() != label:
                pass

    def finish(self, missing: list[Tree]) -> Tree:
        """Close everything; the missing preterminals become the root's last children."""
        while len(self._labels) > 1:
            self._close_innermost()
        (roots,) = self._children
        labels = {root.label for root in roots if root.children}
        if len(roots) == 1 and not missing:
            return roots[0]
        if len(labels) != 1:
            return Tree(ROOT_LABEL, (*roots, *missing))
        joined = [child for root in roots for child in root.children or (root,)]
        return Tree(labels.pop(), (*joined, *missing))

    def _close_innermost(self) -> str:
        """Close a constituent, or drop it if there is nothing in it; returns its label."""
        label, children = self._labels.pop(), self._children.pop()
        self._num_open[label] -= 1
        if children:
            self._children[-1].append(Tree(label, tuple(children)))
        return label
