"""What parsers learn from and are scored on: trees without traces and function tags.

Source: what users of EVALB (Sekine and Collins) do with the Penn Treebank before they train: traces
`-NONE-` go, with the constituents that are emptied by it; labels end before the first `-` or `=`,
so that NP-SBJ-1 and NP=2 are NP; the outer bracket is named TOP.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from nmtkit.parsing.trees import Tree

ROOT_LABEL = "TOP"

_TRACE = "-NONE-"
_ROOT_LABELS = ("", "ROOT", "S1", ROOT_LABEL)  # of the treebank, and of other tools' files
_BARE_LABEL = re.compile("[^-=]+")


def clean(tree: Tree) -> Tree | None:
    """Return a tree as parsers learn it, the outer bracket named TOP; None if it is all traces."""
    cleaned = _without_traces(tree)
    if cleaned is None:
        return None
    if tree.label in _ROOT_LABELS and cleaned.children:
        return Tree(ROOT_LABEL, cleaned.children)
    return Tree(ROOT_LABEL, (cleaned,))


def clean_all(trees: Iterable[Tree], warn: Callable[[str], None]) -> Iterator[Tree]:
    """Yield clean trees; a warning tells how many were traces alone, and are left out."""
    num_empty = 0
    for tree in trees:
        cleaned = clean(tree)
        if cleaned is None:
            num_empty += 1
        else:
            yield cleaned
    if num_empty:
        warn(f"trees of traces alone, left out: {num_empty}")


def bare_label(label: str) -> str:
    """Return a label without function tags and indices; -LRB- and its like stay whole."""
    match = _BARE_LABEL.match(label)
    return match[0] if match else label


def _without_traces(tree: Tree) -> Tree | None:
    """Return what is left without traces and function tags."""
    done: list[list[Tree]] = [[]]  # what is left of each open constituent's children
    waiting: list[tuple[Tree, bool]] = [(tree, False)]
    while waiting:
        node, is_ended = waiting.pop()
        if is_ended:
            children = done.pop()
            if children:
                done[-1].append(Tree(bare_label(node.label), tuple(children)))
        elif node.word is None:
            done.append([])
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(node.children))
        elif node.label != _TRACE:
            done[-1].append(Tree(bare_label(node.label), (), node.word))
    return done[0][0] if done[0] else None
