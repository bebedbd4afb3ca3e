"""Trees for tests: drawn at random, and those of the test data."""

from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from nmtkit.text.codec import TextCodec
from nmtkit.text.tree_tokens import TreeTokens
from nmtkit.text.trees import Tree, parse_tree
from nmtkit.text.words import Words
from tests.shared_data import DATA
from tests.tiny import WORDS

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


TREEBANK = (
    "(TOP (S (NP (D a) (N b)) (VP (V c))))",
    "(TOP (NP (N d)))",
    "(TOP (S (NP (N a)) (VP (V c) (NP (D e) (N f)))))",
    "(TOP (S (VP (V g)) (P h)))",
)


def parser_codec(keeps_tags: bool = False) -> TextCodec:
    """Return words as the source, and the labels of `TREEBANK` as the target."""
    treebank = [parse_tree(text, "treebank") for text in TREEBANK]
    tokens = TreeTokens.count(treebank, keeps_tags)
    return TextCodec("words", "trees", Words(WORDS), tokens, is_shared=False)


def labels(tree: Tree) -> Iterator[str]:
    return (node.label for node in tree.nodes())


def identifier(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
