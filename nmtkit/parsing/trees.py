"""Bracketed trees of the Penn Treebank: text to objects and back.

`(TOP (S (NP (PRP He)) (VP (VBZ sleeps)) (. .)))`: an opening bracket and its label, then either the
constituents in it or, in a preterminal, one word. The root of a treebank's own files has an empty
label. A tree may run over several lines; an opening bracket in the first column begins a new one.
What is done with trees - cleaning, tokens for a model, drawing - lives elsewhere.

Nothing here recurses, as a model may put out ten thousand brackets and more.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nmtkit.errors import DataError

BRACKET_WORDS = {"(": "-LRB-", ")": "-RRB-"}
"""How a word that is a bracket is written in a tree; the same holds for brackets in a word."""

# ASCII white space, and what some reader takes for a line end. Other space is part of a word: in
# treebanks of scientific text there are words with a narrow or a no-break space.
_SPACE = r"\s\x1c-\x1e\x85\u2028\u2029"
_SPACES = re.compile(rf"(?a:[{_SPACE}])+")
_TOKENS = re.compile(rf"(?a:[()]|[^{_SPACE}()]+)")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A constituent: either a preterminal with a word, or one with further constituents in it.

    Attributes:
        label: `NP`, `NP-SBJ-1`, the tag of a preterminal; "" at the root of a treebank's file.
        children: from left to right; none in a preterminal.
        word: of a preterminal, without brackets in it (`escape`); None in other constituents.
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def __post_init__(self) -> None:
        assert (self.word is None) == bool(self.children), "either a word or children"
        assert self.label or self.children, "a word has a tag"

    def nodes(self) -> Iterator["Tree"]:
        """Yield the constituents depth-first, each before its children."""
        waiting = [self]
        while waiting:
            tree = waiting.pop()
            yield tree
            waiting.extend(reversed(tree.children))

    def preterminals(self) -> Iterator["Tree"]:
        """Yield the preterminals from left to right."""
        return (tree for tree in self.nodes() if tree.word is not None)

    def words(self) -> list[str]:
        """Return the words from left to right."""
        return [tree.word for tree in self.nodes() if tree.word is not None]

    def __eq__(self, other: object) -> bool:
        """Compare labels, words and shape."""
        return isinstance(other, Tree) and _signature(self) == _signature(other)

    def __hash__(self) -> int:
        """Return equal numbers for equal trees."""
        return hash(_signature(self))

    def __repr__(self) -> str:
        """Return the tree in brackets."""
        return f"<Tree {format_tree(self)}>"


def read_trees(
    lines: Iterable[str], name: str, skip: Callable[[str], None] | None
) -> Iterator[Tree]:
    """Yield the trees of a text, whether each has a line of its own or runs over several.

    Args:
        lines: without their ends.
        name: what messages call the text.
        skip: takes the message about a malformed tree, which is left out with all that stands
            before the next opening bracket in the first column; None = it is an error.

    Raises:
        DataError: a malformed tree, and no `skip`.
    """
    reader = _Reader()
    is_skipping = False
    for number, line in enumerate(lines, 1):
        if line.startswith("("):
            try:
                reader.finish()
            except DataError as error:
                _report(error, skip)
            is_skipping = False
        if is_skipping:
            continue
        try:
            yield from list(reader.read(line, f"{name}:{number}"))  # all of a line, or nothing
        except DataError as error:
            _report(error, skip)
            is_skipping = True
    try:
        reader.finish()
    except DataError as error:
        _report(error, skip)


def parse_tree(line: str, where: str) -> Tree:
    """Read the only tree of a line.

    Args:
        line: its text.
        where: what messages call it, such as `file:12`.

    Raises:
        DataError: it is malformed, or the line holds none, or several.
    """
    reader = _Reader()
    trees = list(reader.read(line, where))
    reader.finish()
    if len(trees) != 1:
        raise DataError(f"{where}: {len(trees)} trees; a line must hold one")
    return trees[0]


def format_tree(tree: Tree) -> str:
    """Return a tree on one line, as `read_trees` reads it."""
    pieces: list[str] = []
    waiting: list[Tree | None] = [tree]
    while waiting:
        node = waiting.pop()
        if node is None:
            pieces.append(")")
        elif node.word is not None:
            pieces.append(f" ({node.label} {node.word})")
        else:
            pieces.append(f" ({node.label}")
            waiting.append(None)
            waiting.extend(reversed(node.children))
    return "".join(pieces)[1:]


def split_words(line: str) -> list[str]:
    """Cut a line into words as trees have them: at white space, except no-break spaces."""
    return [word for word in _SPACES.split(line) if word]


def escape(word: str) -> str:
    """Return a word as trees have it: each bracket spelled out."""
    for bracket, spelling in BRACKET_WORDS.items():
        word = word.replace(bracket, spelling)
    return word


@dataclass
class _Open:
    """A constituent whose closing bracket is still to come; the label is None until it is read."""

    label: str | None
    word: str | None
    children: list[Tree]


class _Reader:
    """What was read of a tree so far."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._begin = ""  # where the open tree begins

    def read(self, line: str, where: str) -> Iterator[Tree]:
        """Yield the trees that end in a line; after an error, go on with a new tree."""
        for token in _TOKENS.findall(line):
            try:
                tree = self._take(token, where)
            except DataError:
                self._open.clear()
                raise
            if tree:
                yield tree

    def finish(self) -> None:
        """Check that no tree is open."""
        if self._open:
            depth = len(self._open)
            self._open.clear()
            raise DataError(
                f"{self._begin}: the tree that begins here is not closed: "
                f"{depth} more ')' expected; add them, or delete the tree"
            )

    def _take(self, token: str, where: str) -> Tree | None:
        """Read a token; returns the tree that it ends."""
        if token == "(":
            self._descend(where)
        elif token == ")":
            return self._close(where)
        else:
            self._add_word(token, where)
        return None

    def _descend(self, where: str) -> None:
        if not self._open:
            self._begin = where
        elif self._open[-1].word is not None:
            parent = self._open[-1]
            raise _error(
                where, f"({parent.label} has a constituent beside the word '{parent.word}'", _TAGS
            )
        elif self._open[-1].label is None:
            self._open[-1].label = ""
        self._open.append(_Open(None, None, []))

    def _add_word(self, token: str, where: str) -> None:
        if not self._open:
            raise _error(where, f"'{token}' stands outside of brackets", _DELETE)
        parent = self._open[-1]
        if parent.label is None:
            parent.label = token
        elif parent.word is None and not parent.children:
            parent.word = token
        else:
            raise _error(where, f"({parent.label} has the word '{token}' beside others", _TAGS)

    def _close(self, where: str) -> Tree | None:
        if not self._open:
            raise _error(where, "')' closes nothing", _DELETE)
        ended = self._open.pop()
        if ended.word is None and not ended.children:
            raise _error(where, f"({ended.label or ''}) is empty", _DELETE)
        tree = Tree(ended.label or "", tuple(ended.children), ended.word)
        if not self._open:
            return tree
        self._open[-1].children.append(tree)
        return None


_TAGS = "each word needs brackets and a tag of its own, as in (NN word)"
_DELETE = "delete it, or the tree"


def _error(where: str, what: str, remedy: str) -> DataError:
    return DataError(f"{where}: {what}; {remedy}")


def _report(error: DataError, skip: Callable[[str], None] | None) -> None:
    """Hand an error to `skip`, or raise it."""
    if skip is None:
        raise error
    skip(str(error))


def _signature(tree: Tree) -> Sequence[tuple[str, str | None, int]]:
    """Return what two equal trees have in common, and no others."""
    return tuple((node.label, node.word, len(node.children)) for node in tree.nodes())
