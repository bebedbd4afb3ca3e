"""Trees for tests: drawn at random, and those of the test data."""

from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from nmtkit.text.trees import Tree
from tests.shared_data import DATA

TREE_FILES = sorted(
    path for path in (DATA / "trees").glob("*/*.*") if path.suffix in (".mrg", ".clean", ".gz")
)

LABELS = st.one_of(
    st.sampled_from(["S", "NP", "NP-SBJ-1", "ADVP|PRT", "-LRB-", ",", "XX", "/NP", "=", "-NONE-"]),
    st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="()"), min_size=1),
)


def preterminals() -> st.SearchStrategy[Tree]:
    return st.builds(lambda label, word: Tree(label, (), word), LABELS, LABELS)


def trees(max_leaves: int = 12) -> st.SearchStrategy[Tree]:
    """Draw trees whose root has a label and children, as parsers have them."""
    inner = st.recursive(
        preterminals(),
        lambda below: st.builds(Tree, LABELS, st.lists(below, min_size=1, max_size=4).map(tuple)),
        max_leaves=max_leaves,
    )
    return st.builds(Tree, LABELS, st.lists(inner, min_size=1, max_size=4).map(tuple))


def deep_tree(depth: int) -> Tree:
    """Return one word under so many constituents."""
    tree = Tree("NN", (), "word")
    for _ in range(depth):
        tree = Tree("NP", (tree,))
    return tree


def labels(tree: Tree) -> Iterator[str]:
    return (node.label for node in tree.nodes())


def identifier(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
