"""Conventions of the Penn Treebank: raw text to words, and its trees in the form for parsers.

Words: each line is one sentence. A full stop is a separate word at the end of the line only, as
elsewhere it belongs to an abbreviation. Source: the rules of `tokenizer.sed` (Robert MacIntyre,
University of Pennsylvania, 1995), with two departures. A comma or colon between digits stays in
its number, as in the treebank. Typographic quotes, dashes and dots are first replaced by the
treebank's spellings.

Trees: traces `-NONE-` are removed, with the constituents that become empty. Labels end before the
first `-` or `=`, so NP-SBJ-1 and NP=2 become NP. The outer bracket is named TOP. Source: the usual
preparation for EVALB (Sekine and Collins). `tree_counts` counts what a treebank has.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from nmtkit.parsing.linearize import linearize
from nmtkit.parsing.trees import ROOT_LABEL, Tree, escape, split_words

_TRACE = "-NONE-"
UNCLEAN_ROOTS = ("", "ROOT", "S1")
"""Labels of outer brackets in treebanks and in the output of other tools."""
_BARE_LABEL = re.compile("[^-=]+")

_SPELLINGS = {
    "\u201c": " `` ",
    "\u201d": " '' ",
    "\u2018": " ` ",
    "\u2019": "'",
    "\u2014": "--",
    "\u2026": "...",
}

# Applied in order to a line that begins and ends with a space.
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
    """Split a sentence into words; brackets become `-LRB-` and so on, as in trees."""
    for character, spelling in _SPELLINGS.items():
        line = line.replace(character, spelling)
    line = f" {line} "
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return [escape(word) for word in split_words(line)]


def clean(tree: Tree) -> Tree | None:
    """Remove traces and function tags, and name the outer bracket TOP; None if only traces."""
    cleaned = _without_traces(tree)
    if cleaned is None:
        return None
    if tree.label in (*UNCLEAN_ROOTS, ROOT_LABEL) and cleaned.children:
        return Tree(ROOT_LABEL, cleaned.children)
    return Tree(ROOT_LABEL, (cleaned,))


def clean_all(trees: Iterable[Tree], warn: Callable[[str], None]) -> Iterator[Tree]:
    """Yield clean trees; warn how many were left out because they have only traces."""
    num_empty = 0
    for tree in trees:
        cleaned = clean(tree)
        if cleaned is None:
            num_empty += 1
        else:
            yield cleaned
    if num_empty:
        warn(f"left out trees with only traces: {num_empty}")


def tree_counts(trees: Iterable[Tree]) -> Iterator[str]:
    """Yield counts of trees, one per line: a name, a tab, a number.

    "tokens of the longest" is the length of a model's output, the end symbol counted.
    """
    num_words: list[int] = []
    brackets: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    longest = deepest = 0
    for tree in trees:
        num_words.append(len(tree.words()))
        longest = max(longest, len(linearize(tree, False, "brackets")) + 1)
        depth = 0
        for node, is_end in tree.walk():
            if is_end:
                depth -= 1
                continue
            (brackets if node.children else tags)[node.label] += 1
            deepest = max(deepest, depth + 1)
            depth += bool(node.children)
    num_trees = len(num_words)
    mean = sum(num_words) / num_trees if num_trees else 0.0
    yield f"trees\t{num_trees}"
    yield f"words\t{sum(num_words)}"
    yield f"words of a tree\t{mean:.2f}"
    yield f"words of the longest\t{max(num_words, default=0)}"
    yield f"constituents\t{sum(brackets.values())}"
    yield f"greatest depth\t{deepest}"
    yield f"labels\t{len(brackets)}"
    yield f"tags\t{len(tags)}"
    yield f"tokens of the longest\t{longest}"


def bare_label(label: str) -> str:
    """Return a label without function tags and indices; labels like -LRB- stay unchanged."""
    match = _BARE_LABEL.match(label)
    return match[0] if match else label


def _without_traces(tree: Tree) -> Tree | None:
    """Return a tree without traces and function tags; None if it has only traces."""
    children_of_open: list[list[Tree]] = [[]]  # cleaned children of each open constituent
    for node, is_end in tree.walk():
        if is_end:
            children = children_of_open.pop()
            if children:
                children_of_open[-1].append(Tree(bare_label(node.label), tuple(children)))
        elif node.word is None:
            children_of_open.append([])
        elif node.label != _TRACE:
            children_of_open[-1].append(Tree(bare_label(node.label), (), node.word))
    return children_of_open[0][0] if children_of_open[0] else None
