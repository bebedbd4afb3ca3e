"""Bracketed trees of the Penn Treebank: text to objects and back.

`(TOP (S (NP (PRP He)) (VP (VBZ sleeps)) (. .)))`: an opening bracket and its label, then either
further constituents or, in a preterminal, one word. In the treebank's files the root has an empty
label. A tree may span several lines; an opening bracket in the first column begins a new one.
Other modules clean, linearise and draw trees.

No function recurses, as a model may produce ten thousand brackets and more.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nmtkit.errors import DataError
from nmtkit.text.lines import MAX_LINE_BYTES

ROOT_LABEL = "TOP"
"""Label of the outer bracket in clean trees."""

BRACKET_WORDS = {"(": "-LRB-", ")": "-RRB-"}
"""Spellings in trees of brackets that are words or parts of words."""

# ASCII white space, and characters that some readers treat as line ends. Other space is part of a
# word: treebanks of scientific text have words with a narrow or a no-break space.
_SPACE = r"\s\x1c-\x1e\x85\u2028\u2029"
_SPACES = re.compile(rf"(?a:[{_SPACE}])+")
_TOKENS = re.compile(rf"(?a:[()]|[^{_SPACE}()]+)")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A constituent: either a preterminal with a word, or a constituent with children.

    Attributes:
        label: such as `NP`, `NP-SBJ-1`, or the tag of a preterminal; "" at a treebank's root.
        children: from left to right; none in a preterminal.
        word: of a preterminal, with brackets spelled out (`escape`); None in other constituents.
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def __post_init__(self) -> None:
        assert (self.word is None) == bool(self.children), "either a word or children"
        assert self.label or self.children, "a word has a tag"

    def walk(self) -> Iterator[tuple["Tree", bool]]:
        """Yield each constituent depth-first: where it begins and, with children, where it ends.

        The second value is whether it ends there.
        """
        stack = [(self, False)]
        while stack:
            tree, is_end = stack.pop()
            yield tree, is_end
            if tree.children and not is_end:
                stack.append((tree, True))
                stack.extend((child, False) for child in reversed(tree.children))

    def nodes(self) -> Iterator["Tree"]:
        """Yield the constituents depth-first, each before its children."""
        return (tree for tree, is_end in self.walk() if not is_end)

    def words(self) -> list[str]:
        """Return the words from left to right."""
        return [tree.word for tree in self.nodes() if tree.word is not None]

    def __eq__(self, other: object) -> bool:
        """Compare labels, words and shape."""
        return isinstance(other, Tree) and format_tree(self) == format_tree(other)

    def __hash__(self) -> int:
        """Return equal hashes for equal trees."""
        return hash(format_tree(self))

    def __repr__(self) -> str:
        """Return the tree in brackets."""
        return f"<Tree {format_tree(self)}>"


def read_trees(
    lines: Iterable[str], name: str, skip: Callable[[str], None] | None
) -> Iterator[Tree]:
    """Yield the trees of a text, of one line each or of several lines.

    Args:
        lines: without line ends.
        name: of the text, for messages.
        skip: receives the message about a malformed tree, which is left out with all text up to the
            next opening bracket in the first column; None = it is an error.

    Raises:
        DataError: a tree is malformed, and `skip` is None.
    """
    reader = _Reader()
    is_skipping = False
    for number, line in enumerate(lines, 1):
        if line.startswith("("):
            with reader.recovering(skip):
                reader.finish()
        elif is_skipping:
            continue
        is_skipping = True
        with reader.recovering(skip):
            yield from list(reader.read(line, f"{name}:{number}"))  # all trees of a line, or none
            is_skipping = False
    with reader.recovering(skip):
        reader.finish()


def parse_tree(line: str, where: str) -> Tree:
    """Read the only tree of a line.

    Args:
        line: text of the line.
        where: location for messages, such as `file:12`.

    Raises:
        DataError: the tree is malformed, or the line does not hold exactly one.
    """
    reader = _Reader()
    trees = list(reader.read(line, where))
    reader.finish()
    if len(trees) != 1:
        raise DataError(f"{where}: {len(trees)} trees; give one per line")
    return trees[0]


def format_tree(tree: Tree) -> str:
    """Return a tree as one line of text, as `read_trees` reads it."""
    parts: list[str] = []
    for node, is_end in tree.walk():
        if is_end:
            parts.append(")")
        elif node.word is not None:
            parts.append(f" ({node.label} {node.word})")
        else:
            parts.append(f" ({node.label}")
    return "".join(parts)[1:]


def split_words(line: str) -> list[str]:
    """Split a line into the words of a tree: at white space, except no-break spaces."""
    return [word for word in _SPACES.split(line) if word]


def escape(word: str) -> str:
    """Return a word with each bracket spelled out, as in trees."""
    for bracket, spelling in BRACKET_WORDS.items():
        word = word.replace(bracket, spelling)
    return word


@dataclass
class _OpenConstituent:
    """A constituent that is not closed yet; the label is None until it is read."""

    label: str | None
    word: str | None
    children: list[Tree]


class _Reader:
    """The part of a tree that was read so far."""

    def __init__(self) -> None:
        self._open: list[_OpenConstituent] = []
        self._begin = ""  # location of the beginning of the open tree
        self._num_characters = 0  # of the lines that it has, with what is before it in its first

    @contextmanager
    def recovering(self, skip: Callable[[str], None] | None) -> Iterator[None]:
        """Pass the message of an error in the context to `skip`, if given, and begin a new tree."""
        try:
            yield
        except DataError as error:
            if skip is None:
                raise
            self._open.clear()
            skip(str(error))

    def read(self, line: str, where: str) -> Iterator[Tree]:
        """Yield the trees that end in a line."""
        self._num_characters = len(line) + (self._num_characters if self._open else 0)
        if self._num_characters > MAX_LINE_BYTES:  # a line has fewer, so a tree is open
            raise DataError(
                f"{self._begin}: the tree that begins here has more than {MAX_LINE_BYTES:,} "
                "characters; close it, or delete it"
            )
        for token in _TOKENS.findall(line):
            if token == "(":
                self._open_constituent(where)
            elif token != ")":
                self._add_word(token, where)
            elif tree := self._close(where):
                self._num_characters = len(line)
                yield tree

    def finish(self) -> None:
        """Raise DataError if a tree is still open."""
        if self._open:
            raise DataError(
                f"{self._begin}: the tree that begins here is not closed: "
                f"{len(self._open)} more ')' expected; add them, or delete the tree"
            )

    def _open_constituent(self, where: str) -> None:
        if not self._open:
            self._begin = where
        elif self._open[-1].word is not None:
            parent = self._open[-1]
            raise _error(
                where, f"({parent.label} has a constituent next to the word '{parent.word}'", _TAGS
            )
        elif self._open[-1].label is None:
            self._open[-1].label = ""
        self._open.append(_OpenConstituent(None, None, []))

    def _add_word(self, token: str, where: str) -> None:
        if not self._open:
            raise _error(where, f"'{token}' stands outside of brackets", _DELETE)
        parent = self._open[-1]
        if parent.label is None:
            parent.label = token
        elif parent.word is None and not parent.children:
            parent.word = token
        else:
            raise _error(where, f"({parent.label} has the word '{token}' next to others", _TAGS)

    def _close(self, where: str) -> Tree | None:
        """Close the innermost constituent; return the tree that is complete, if any."""
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


_TAGS = "give each word its own brackets and tag, as in (NN word)"
_DELETE = "delete it, or the tree"


def _error(where: str, what: str, remedy: str) -> DataError:
    return DataError(f"{where}: {what}; {remedy}")
