"""Counts of trees, outlines for a terminal, and pictures in SVG."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nmtkit.parsing.linearize import linearize
from nmtkit.parsing.trees import Tree
from nmtkit.reporting.svg_text import INK, MUTED, PAPER, columns, xml_text

_BRANCH, _LAST_BRANCH, _STEM, _SPACE = "\u251c\u2500 ", "\u2514\u2500 ", "\u2502  ", "   "

_CHARACTER = 8.0  # width, of the sans-serif letters of this size
_FONT_SIZE = 14
_CAPTION = 24.0  # height
_GAP = 14.0  # between words
_LEVEL = 48.0  # between a label and those below it
_MARGIN = 16.0


def tree_counts(trees: Iterable[Tree]) -> Iterator[str]:
    """Yield counts of trees, one per line: a name, a tab, a number.

    "tokens of the longest" is the length of a model's output, the end symbol counted.
    """
    num_words: list[int] = []
    brackets: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    longest = deepest = 0
    for tree in trees:
        num_words.append(sum(1 for _ in tree.preterminals()))
        for node in tree.nodes():
            (brackets if node.children else tags)[node.label] += 1
        longest = max(longest, len(linearize(tree, keeps_tags=False)) + 1)
        deepest = max(deepest, _depth(tree))
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


def outline(tree: Tree) -> Iterator[str]:
    """Yield the lines of an outline: one constituent per line, words next to their tags."""
    stack = [(tree, "", "")]
    while stack:
        node, before, below = stack.pop()
        label = node.label if node.word is None else f"{node.label} {node.word}"
        yield f"{before}{label}".rstrip()
        children = [(child, below + _BRANCH, below + _STEM) for child in node.children[:-1]] + [
            (child, below + _LAST_BRANCH, below + _SPACE) for child in node.children[-1:]
        ]
        stack.extend(reversed(children))


def svg(trees: Iterable[Tree]) -> str:
    """Draw trees below each other, each with its number and its words in a row; return SVG."""
    drawings: list[str] = []
    width = top = 0.0
    for number, tree in enumerate(trees, 1):
        nodes = _place_nodes(tree)
        bottom = 1 + max(node.depth for node in nodes)
        caption = f"{number}: {' '.join(tree.words())}"
        content = "".join(_draw_node(node, nodes, bottom) for node in nodes)
        drawings.append(
            f'<g transform="translate(0,{top:.1f})"><text x="{_MARGIN}" y="{_CAPTION}" '
            f'fill="{MUTED}" text-anchor="start">{xml_text(caption)}</text>{content}</g>'
        )
        ends = [node.x + node.width / 2 for node in nodes]
        width = max(width, _MARGIN + max(*ends, _MARGIN + _CHARACTER * columns(caption)))
        top += 2 * _MARGIN + _CAPTION + _LEVEL * bottom + _FONT_SIZE
    size = f'width="{width:.1f}" height="{top:.1f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.1f} {top:.1f}" '
        f'font-family="sans-serif" font-size="{_FONT_SIZE}" fill="{INK}" text-anchor="middle">'
        f'<rect {size} fill="{PAPER}"/>{"".join(drawings)}</svg>'
    )


@dataclass
class _Node:
    """A constituent with its place in the picture.

    Attributes:
        tree: the constituent.
        depth: number of constituents around it.
        parent: index of its parent; the root has its own index.
        width: of its label and word.
        x: centre of the label.
    """

    tree: Tree
    depth: int
    parent: int
    width: float
    x: float = 0.0


def _place_nodes(tree: Tree) -> list[_Node]:
    """Return the constituents, each before its children and centred above them."""
    nodes: list[_Node] = []
    stack = [(tree, 0, 0)]
    end = _MARGIN
    while stack:
        one, depth, parent = stack.pop()
        node = _Node(
            one, depth, parent, _CHARACTER * max(columns(one.label), columns(one.word or ""))
        )
        if one.word is not None:
            node.x = end + node.width / 2
            end += node.width + _GAP
        stack.extend((child, depth + 1, len(nodes)) for child in reversed(one.children))
        nodes.append(node)
    children: list[list[float]] = [[] for _ in nodes]
    for number in reversed(range(len(nodes))):
        node = nodes[number]
        if children[number]:
            node.x = (min(children[number]) + max(children[number])) / 2
        children[node.parent].append(node.x)
    return nodes


def _draw_node(node: _Node, nodes: Sequence[_Node], bottom: int) -> str:
    """Return the SVG of a label, of its word if any, and of the line to its parent."""
    parent = nodes[node.parent]
    picture = _text(node.x, node.depth, node.tree.label)
    if parent is not node:
        picture += _line(parent.x, parent.depth, node.x, node.depth)
    if node.tree.word is not None:
        picture += _line(node.x, node.depth, node.x, bottom)
        picture += _text(node.x, bottom, node.tree.word)
    return picture


def _text(x: float, level: int, text: str) -> str:
    return f'<text x="{x:.1f}" y="{_baseline(level):.1f}">{xml_text(text)}</text>'


def _line(x: float, level: int, below_x: float, below: int) -> str:
    """Return a line from below one label to above another."""
    start, end = _baseline(level) + _FONT_SIZE / 3, _baseline(below) - _FONT_SIZE
    return f'<path d="M{x:.1f},{start:.1f} L{below_x:.1f},{end:.1f}" stroke="{MUTED}"/>'


def _baseline(level: int) -> float:
    return _MARGIN + _CAPTION + _FONT_SIZE + _LEVEL * level


def _depth(tree: Tree) -> int:
    """Return the greatest depth of nested constituents, preterminals counted."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in node.children]
    return deepest
