from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmtkit.parsing.linearize import (
    ANY_TAG,
    IS_CHILD_FIRST,
    linearize,
    restore,
    restore_lines,
    summarize_repairs,
)
from nmtkit.parsing.trees import Tree, escape, format_tree, parse_tree, read_trees
from nmtkit.text.lines import read_lines
from tests.shared_data import needs_data
from tests.thoroughness import sample
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
REPAIRED_IN_ORDER = [
    ("XX (NP XX", "a b", "(NP (XX a) (XX b))"),  # brackets missing at the end
    ("XX (NP XX )S (VP )VP )NP", "a b", "(NP (XX a) (VP (XX b)))"),  # no opening bracket
    ("(S XX (NP )NP )S", "a", "(S (NP (XX a)))"),  # no first child
    ("XX (S (NP XX )NP )S", "a b", "(S (NP (XX a) (XX b)))"),  # one child, two opening brackets
    ("XX XX (TOP )TOP", "a b", "(TOP (XX a) (XX b))"),  # a word outside of the root
    ("XX (TOP )TOP XX (TOP )TOP", "a b", "(TOP (XX a) (XX b))"),  # a line parsed in two segments
    ("XX (NP )NP (TOP )TOP", "a b", "(TOP (NP (XX a)) (XX b))"),  # too few tags
    ("", "a", "(TOP (XX a))"),
]

in_each_linearization = pytest.mark.parametrize("linearization", IS_CHILD_FIRST)


def escaped(words: list[str]) -> list[str]:
    return [escape(word) for word in words]


def untagged(tree: Tree) -> Tree:
    """Return a tree with all tags `XX`, made from its text."""
    text = format_tree(tree)
    for one in tree.nodes():
        text = text.replace(f"({one.label} {one.word})", f"({ANY_TAG} {one.word})", 1)
    return parse_tree(text, "text")


@pytest.mark.parametrize(
    ("linearization", "keeps_tags", "tokens"),
    [
        ("brackets", False, "(TOP (S (NP XX )NP (VP XX )VP XX )S )TOP"),
        ("brackets", True, "(TOP (S (NP PRP )NP (VP VBZ )VP . )S )TOP"),
        ("in-order", False, "XX (NP )NP (S XX (VP )VP XX )S (TOP )TOP"),
        ("in-order", True, "PRP (NP )NP (S VBZ (VP )VP . )S (TOP )TOP"),
    ],
)
def test_tags_are_left_out_or_kept(linearization: str, keeps_tags: bool, tokens: str) -> None:
    tree = parse_tree(TREE, "text")
    assert " ".join(linearize(tree, keeps_tags, linearization)) == tokens


def in_order(tree: Tree) -> list[str]:
    """Traverse a tree in-order, as its definition says: first child, parent, other children."""
    if not tree.children:
        return [tree.label]
    first, *others = map(in_order, tree.children)
    return [*first, f"({tree.label}", *chain(*others), f"){tree.label}"]


@given(st.one_of(trees(), preterminals()))
def test_the_in_order_linearization_is_its_definition(tree: Tree) -> None:
    assert linearize(tree, True, "in-order") == in_order(tree)


@in_each_linearization
@given(st.one_of(trees(), preterminals()))
def test_trees_are_restored_from_tokens_and_words(linearization: str, tree: Tree) -> None:
    assert restore(linearize(tree, True, linearization), tree.words(), linearization) == tree


@in_each_linearization
def test_without_tags_only_the_tags_are_lost(linearization: str) -> None:
    tree = parse_tree(TREE, "text")
    tokens = linearize(tree, False, linearization)
    assert restore(tokens, tree.words(), linearization) == untagged(tree)


@in_each_linearization
@given(TOKENS, WORDS)
@example(["("] * 50 + ["XX"], ["a"])
def test_any_tokens_make_a_tree_of_exactly_the_words(
    linearization: str, tokens: list[str], words: list[str]
) -> None:
    tree = restore(tokens, words, linearization)
    assert tree.words() == escaped(words)
    assert parse_tree(format_tree(tree), "text") == tree


@in_each_linearization
@given(TOKENS, WORDS)
def test_a_repaired_tree_needs_no_repair(
    linearization: str, tokens: list[str], words: list[str]
) -> None:
    tree = restore(tokens, words, linearization)
    assert restore(linearize(tree, True, linearization), words, linearization) == tree


@given(trees(), st.data())
def test_a_bracket_that_is_missing_at_the_end_is_added(tree: Tree, data: st.DataObject) -> None:
    tokens = linearize(tree, True, "brackets")
    num_closing = next(i for i, one in enumerate(reversed(tokens)) if not one.startswith(")"))
    cut = data.draw(st.integers(0, num_closing))
    assert restore(tokens[: len(tokens) - cut], tree.words(), "brackets") == tree


@pytest.mark.parametrize(
    ("linearization", "tokens", "words", "expected"),
    [
        *(("brackets", *case) for case in REPAIRED),
        *(("in-order", *case) for case in REPAIRED_IN_ORDER),
    ],
)
def test_malformed_tokens_are_repaired(
    linearization: str, tokens: str, words: str, expected: str
) -> None:
    assert format_tree(restore(tokens.split(), words.split(), linearization)) == expected


def test_lines_are_restored_with_their_words_and_repairs_are_counted() -> None:
    reports: list[str] = []
    pairs = [("(TOP NN )TOP", "a"), ("(TOP XX XX", "b"), ("XX", ""), ("", "c")]
    lines = list(restore_lines("brackets", pairs, reports.append))
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


@in_each_linearization
def test_deep_trees_are_restored(linearization: str) -> None:
    tree = deep_tree(10_000)
    tokens = linearize(tree, True, linearization)
    assert restore(tokens, ["word"], linearization) == tree
    if linearization == "brackets":
        assert restore(tokens[:-5_000], ["word"], linearization) == tree


@pytest.mark.sampled(every=3)
@needs_data
@pytest.mark.parametrize("path", TREE_FILES, ids=identifier)
@in_each_linearization
def test_the_trees_of_the_test_data_are_restored(linearization: str, path: Path) -> None:
    for tree in read_trees(sample([*read_lines(path)], 40, path.name), str(path), None):
        for keeps_tags, expected in ((True, tree), (False, untagged(tree))):
            tokens = linearize(tree, keeps_tags, linearization)
            assert restore(tokens, tree.words(), linearization) == expected
