from itertools import islice

import pytest
from hypothesis import given

from nmtkit.parsing.cleaning import bare_label, clean, clean_all
from nmtkit.parsing.trees import Tree, format_tree, parse_tree
from nmtkit.text.lines import read_lines
from tests.shared_data import DATA, needs_data
from tests.trees import deep_tree, trees

CASES = [
    ("( (S (NP-SBJ-1 (DT The)) (. .)))", "(TOP (S (NP (DT The)) (. .)))"),
    ("(S (NP (-NONE- *-1)) (VP=2 (VB go)))", "(TOP (S (VP (VB go))))"),
    ("(ROOT (NP (NP (-NONE- *)) (NN x)))", "(TOP (NP (NN x)))"),
    ("(TOP (S (NP (-NONE- *)) (NP (-NONE- *))) (NN x))", "(TOP (NN x))"),
    ("(S1 (ADVP|PRT (-LRB- -LRB-) (: -)))", "(TOP (ADVP|PRT (-LRB- -LRB-) (: -)))"),
    ("(NN x)", "(TOP (NN x))"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_traces_function_tags_and_what_is_emptied_go(text: str, expected: str) -> None:
    cleaned = clean(parse_tree(text, "text"))
    assert cleaned is not None
    assert format_tree(cleaned) == expected


def test_nothing_is_left_of_traces_alone() -> None:
    assert clean(parse_tree("( (S (NP (-NONE- *)) (VP (-NONE- *))))", "text")) is None


@pytest.mark.parametrize("label", ["-LRB-", "-RRB-", "-", "=", "PRP$", "ADVP|PRT", ""])
def test_a_label_that_begins_with_a_hyphen_stays_whole(label: str) -> None:
    assert bare_label(label) == label


@given(trees())
def test_what_is_clean_stays_as_it_is(tree: Tree) -> None:
    cleaned = clean(tree)
    if cleaned is not None:
        assert clean(cleaned) == cleaned
        assert cleaned.label == "TOP"


def test_of_many_trees_those_of_traces_alone_are_left_out_and_told() -> None:
    warnings: list[str] = []
    texts = ["(NN x)", "(S (-NONE- *))", "(NN y)"]
    left = clean_all((parse_tree(text, "text") for text in texts), warnings.append)
    assert [tree.words() for tree in left] == [["x"], ["y"]]
    assert warnings == ["trees of traces alone, left out: 1"]
    assert not list(clean_all([], warnings.append))
    assert len(warnings) == 1


def test_deep_trees_are_cleaned() -> None:
    assert clean(Tree("TOP", (deep_tree(10_000),))) == Tree("TOP", (deep_tree(10_000),))


@needs_data
@pytest.mark.parametrize("name", ["craft/dev", "craft/test", "gum/dev", "gum/test"])
def test_treebanks_are_cleaned_as_others_clean_them(name: str) -> None:
    path = DATA / "trees" / f"{name}.mrg"
    pairs = zip(read_lines(path), read_lines(path.with_suffix(".clean")), strict=True)
    for number, (raw, expected) in enumerate(islice(pairs, 200), 1):
        cleaned = clean(parse_tree(raw, f"{path}:{number}"))
        assert cleaned is not None
        assert format_tree(cleaned) == expected
