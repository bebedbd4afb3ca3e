from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmtkit.parsing.linearize import (
    ANY_TAG,
    linearize,
    restore,
    restore_lines,
    summarize_repairs,
)
from nmtkit.parsing.trees import Tree, escape, format_tree, parse_tree, read_trees
from nmtkit.text.lines import read_lines
from tests.shared_data import needs_data
from tests.trees import TREE_FILES, deep_tree, identifier, preterminals, trees

TREE = "(TOP (S (NP (PRP He)) (VP (VBZ sleeps)) (. .)))"

WORDS = st.lists(st.sampled_from(["the", "(", "a)b", "XX", ")NP", "-LRB-"]), min_size=1, max_size=6)
TOKENS = st.lists(
    st.one_of(
        st.sampled_from(["(NP", ")NP", "(S", ")S", "(", ")", "XX", "NN", "<unk>", "(N(P", "))"]),
        st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=3),
    ),
    max_size=20,
)

# Tokens of a model, words, and the repaired tree.
REPAIRED = [
    ("(TOP (S XX", "a", "(TOP (S (XX a)))"),  # brackets missing at the end
    ("(TOP (S (NP XX )S )TOP", "a", "(TOP (S (NP (XX a))))"),  # one missing within
    ("(TOP XX )NP XX )TOP", "a b", "(TOP (XX a) (XX b))"),  # a closing bracket without opening one
    ("(TOP XX XX XX )TOP", "a b", "(TOP (XX a) (XX b))"),  # too many tags
    ("(TOP (S XX )S )TOP", "a b c", "(TOP (S (XX a)) (XX b) (XX c))"),  # too few
    ("(TOP (NP )NP (VP (NP )NP XX )VP )TOP", "a", "(TOP (VP (XX a)))"),  # empty constituents
    ("XX (S XX )S", "a b", "(S (XX a) (XX b))"),  # a tag outside the root
    ("(TOP XX )TOP (TOP XX )TOP", "a b", "(TOP (XX a) (XX b))"),  # a line parsed in two segments
    ("(S XX )S (NP XX )NP", "a b", "(TOP (S (XX a)) (NP (XX b)))"),  # several roots
    ("XX XX", "a b", "(TOP (XX a) (XX b))"),  # none
    ("", "a", "(TOP (XX a))"),
    ("(TOP <unk> NN )TOP", "a", "(TOP (NN a))"),
    ("(TOP XX )TOP", "(", "(TOP (XX -LRB-))"),
]


def escaped(words: list[str]) -> list[str]:
    return [escape(word) for word in words]


def untagged(tree: Tree) -> Tree:
    """Return a tree with all tags `XX`, made from its text."""
    text = format_tree(tree)
    for one in tree.nodes():
        text = text.replace(f"({one.label} {one.word})", f"({ANY_TAG} {one.word})", 1)
    return parse_tree(text, "text")


def test_tags_are_left_out_or_kept() -> None:
    tree = parse_tree(TREE, "text")
    assert " ".join(linearize(tree, keeps_tags=False)) == "(TOP (S (NP XX )NP (VP XX )VP XX )S )TOP"
    assert " ".join(linearize(tree, keeps_tags=True)) == "(TOP (S (NP PRP )NP (VP VBZ )VP . )S )TOP"


@given(st.one_of(trees(), preterminals()))
def test_trees_are_restored_from_tokens_and_words(tree: Tree) -> None:
    assert restore(linearize(tree, keeps_tags=True), tree.words()) == tree


def test_without_tags_only_the_tags_are_lost() -> None:
    tree = parse_tree(TREE, "text")
    assert restore(linearize(tree, keeps_tags=False), tree.words()) == untagged(tree)


@given(TOKENS, WORDS)
@example(["("] * 50 + ["XX"], ["a"])
def test_any_tokens_make_a_tree_of_exactly_the_words(tokens: list[str], words: list[str]) -> None:
    tree = restore(tokens, words)
    assert tree.words() == escaped(words)
    assert parse_tree(format_tree(tree), "text") == tree


@given(TOKENS, WORDS)
def test_a_repaired_tree_needs_no_repair(tokens: list[str], words: list[str]) -> None:
    tree = restore(tokens, words)
    assert restore(linearize(tree, keeps_tags=True), words) == tree


@given(trees(), st.data())
def test_a_bracket_that_is_missing_at_the_end_is_added(tree: Tree, data: st.DataObject) -> None:
    tokens = linearize(tree, keeps_tags=True)
    num_closing = next(i for i, one in enumerate(reversed(tokens)) if not one.startswith(")"))
    cut = data.draw(st.integers(0, num_closing))
    assert restore(tokens[: len(tokens) - cut], tree.words()) == tree


@pytest.mark.parametrize(("tokens", "words", "expected"), REPAIRED)
def test_malformed_tokens_are_repaired(tokens: str, words: str, expected: str) -> None:
    assert format_tree(restore(tokens.split(), words.split())) == expected


def test_lines_are_restored_with_their_words_and_repairs_are_counted() -> None:
    reports: list[str] = []
    pairs = [("(TOP NN )TOP", "a"), ("(TOP XX XX", "b"), ("XX", ""), ("", "c")]
    lines = list(restore_lines(pairs, reports.append))
    assert lines == ["(TOP (NN a))", "(TOP (XX b))", "", "(TOP (XX c))"]
    assert reports == ["trees: 3, repaired: 2"]


@pytest.mark.parametrize(
    ("are_repaired", "summary"),
    [([True, False, None, False], "trees: 3, repaired: 1"), ([None, None], ""), ([], "")],
)
def test_repaired_outputs_are_counted_without_blank_ones(
    are_repaired: list[bool | None], summary: str
) -> None:
    assert summarize_repairs(Counter(are_repaired)) == summary


def test_deep_trees_are_restored() -> None:
    tree = deep_tree(10_000)
    tokens = linearize(tree, keeps_tags=True)
    assert restore(tokens, ["word"]) == tree
    assert restore(tokens[:-5_000], ["word"]) == tree


@needs_data
@pytest.mark.parametrize("path", TREE_FILES, ids=identifier)
def test_the_trees_of_the_test_data_are_restored(path: Path) -> None:
    for tree in read_trees(islice(read_lines(path), 150), str(path), None):
        assert restore(linearize(tree, keeps_tags=True), tree.words()) == tree
        assert restore(linearize(tree, keeps_tags=False), tree.words()) == untagged(tree)
