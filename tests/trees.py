"""Trees for tests: drawn at random, and those of the test data."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hypothesis import strategies as st

from nmtkit.parsing.trees import Tree, parse_tree
from nmtkit.parsing.vocabulary import TREE_VOCABULARIES
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
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
    """Draw trees whose root has a label and children, as for parsers."""
    inner = st.recursive(
        preterminals(),
        lambda below: st.builds(Tree, LABELS, st.lists(below, min_size=1, max_size=4).map(tuple)),
        max_leaves=max_leaves,
    )
    return st.builds(Tree, LABELS, st.lists(inner, min_size=1, max_size=4).map(tuple))


def deep_tree(depth: int) -> Tree:
    """Return a tree of one word under `depth` constituents."""
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


def parser_codec(keeps_tags: bool = False, linearization: str = "brackets") -> TextCodec:
    """Return words as the source, and the labels of `TREEBANK` as the target."""
    treebank = [parse_tree(text, "treebank") for text in TREEBANK]
    tokens = TREE_VOCABULARIES[linearization].of_trees(treebank, keeps_tags)
    return TextCodec("words", "trees", Words(WORDS), tokens, is_shared=False)


def write_treebank(folder: Path, sections: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Write trees to files named as in the Penn Treebank: 02/wsj_0201.mrg, 02/wsj_0202.mrg, ..."""
    for section, files in sections.items():
        (folder / section).mkdir(parents=True)
        for number, trees in enumerate(files, 1):
            path = folder / section / f"wsj_{section}{number:02}.mrg"
            path.write_text("".join(f"\n{tree}\n" for tree in trees), "utf-8")


def labels(tree: Tree) -> Iterator[str]:
    return (node.label for node in tree.nodes())


def chain_of(tree: Tree) -> int:
    """Return the length of the longest chain of constituents over the same words."""
    chains = []
    for node in tree.nodes():
        length, inner = 1, node
        while len(inner.children) == 1 and inner.children[0].children:
            length, inner = length + 1, inner.children[0]
        chains.append(length)
    return max(chains)


def identifier(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
