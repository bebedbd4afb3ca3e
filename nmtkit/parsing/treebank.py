"""The conventions of the Penn Treebank: raw text to its words, and its trees as parsers learn them.

Words: a line is taken for a sentence. Only at its end is a full stop a word of its own, as
elsewhere it belongs to an abbreviation. Source: the rules of `tokenizer.sed` (Robert MacIntyre,
University of Pennsylvania, 1995), with two departures: a comma or colon between digits stays in
its number, as it does in the treebank, and typographic quotes, dashes and dots are first spelled
as the treebank spells them.

Trees: traces `-NONE-` go, with the constituents that are emptied by it; labels end before the first
`-` or `=`, so that NP-SBJ-1 and NP=2 are NP; the outer bracket is named TOP. Source: what users of
EVALB (Sekine and Collins) do before they train.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from nmtkit.parsing.trees import Tree, escape, split_words

ROOT_LABEL = "TOP"

_TRACE = "-NONE-"
_ROOT_LABELS = ("", "ROOT", "S1", ROOT_LABEL)  # of the treebank, and of other tools' files
_BARE_LABEL = re.compile("[^-=]+")

_SPELLINGS = {
    "\u201c": " `` ",
    "\u201d": " '' ",
    "\u2018": " ` ",
    "\u2019": "'",
    "\u2014": "--",
    "\u2026": "...",
}

# In order, on a line that begins and ends with a space.
_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r'(?<=[ (\[{<])"', " `` "),
        (r"\.\.\.", " ... "),
        (r"[;@#$%&]|(?<!\d)[,:]|[,:](?!\d)", r" \g<0> "),
        (r"([^.])(\.)([\])}>\"' ]*)$", r"\1 \2\3"),
        (r"[?!\[\](){}<>]|--", r" \g<0> "),
        (r'"', " '' "),
        (r"(?<=[^'])' ", " ' "),
        (r"(?<=\S)('[sSmMdD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r" \1 "),
        (r" ([Cc]an)(not) ", r" \1 \2 "),
        (r" ([Dd]')(ye) ", r" \1 \2 "),
        (r" ([Gg]im|[Ll]em)(me) ", r" \1 \2 "),
        (r" ([Gg]on|[Ww]an)(na) ", r" \1 \2 "),
        (r" ([Gg]ot)(ta) ", r" \1 \2 "),
        (r" ([Mm]ore)('n) ", r" \1 \2 "),
        (r" ('[Tt])(is|was) ", r" \1 \2 "),
    )
]


def tokenize(line: str) -> list[str]:
    """Cut a sentence into words; brackets are spelled as in trees, `-LRB-`."""
    for character, spelling in _SPELLINGS.items():
        line = line.replace(character, spelling)
    line = f" {line} "
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return [escape(word) for word in split_words(line)]


def clean(tree: Tree) -> Tree | None:
    """Return a tree as parsers learn it, the outer bracket named TOP; None if it is all traces."""
    cleaned = _without_traces(tree)
    if cleaned is None:
        return None
    if tree.label in _ROOT_LABELS and cleaned.children:
        return Tree(ROOT_LABEL, cleaned.children)
    return Tree(ROOT_LABEL, (cleaned,))


def clean_all(trees: Iterable[Tree], warn: Callable[[str], None]) -> Iterator[Tree]:
    """Yield clean trees; a warning has the number of those left out, which are traces alone."""
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
