"""What `nmtkit trees info` tells of trees."""

from collections import Counter
from collections.abc import Iterable, Iterator

from nmtkit.parsing.linearize import linearize
from nmtkit.parsing.trees import Tree


def tree_counts(trees: Iterable[Tree]) -> Iterator[str]:
    """Count trees, and yield lines that tell of them: a name, a tab, a number.

    The longest is as a model would put it out, the end symbol counted.
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


def _depth(tree: Tree) -> int:
    """Return how many constituents are inside of each other at most, preterminals counted."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in node.children]
    return deepest
