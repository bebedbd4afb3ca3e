from nmtkit.parsing.tree_counts import tree_counts
from nmtkit.parsing.trees import parse_tree
from tests.trees import TREEBANK


def test_trees_are_counted() -> None:
    lines = list(tree_counts(parse_tree(text, "text") for text in TREEBANK))
    assert lines == [
        "trees\t4",
        "words\t10",
        "words of a tree\t2.50",
        "words of the longest\t4",
        "constituents\t14",
        "greatest depth\t5",
        "labels\t4",
        "tags\t4",
        "tokens of the longest\t15",
    ]


def test_no_trees_are_counted_too() -> None:
    assert "words of a tree\t0.00" in list(tree_counts([]))
