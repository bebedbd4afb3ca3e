import re
from itertools import chain, islice, repeat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.parsing.trees import Tree, escape, format_tree, parse_tree, read_trees, split_words
from nmtkit.text.lines import read_lines
from tests.messages import check_message, refuses
from tests.shared_data import needs_data
from tests.trees import TREE_FILES, deep_tree, identifier, labels, trees

TREEBANK = """\

( (S
    (NP-SBJ-1 (DT The) (NN dog) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )))
    (. .) ))
( (NP
    (-LRB- -LRB-) (NN end) (-RRB- -RRB-) ))
"""

MALFORMED = [
    ("(S (NP (NN dog))", "1 ')'"),
    ("(S (NN dog)))", "')'"),
    ("S (NN dog))", "S"),
    ("(S (NN dog) barks)", "S barks"),
    ("(NP the dog)", "NP dog"),
    ("(NP the (NN dog))", "NP the"),
    ("(S (NP) (NN dog))", "NP"),
    ("()", "()"),
]


def read(text: str) -> list[Tree]:
    return list(read_trees(text.split("\n"), "text", None))


@given(trees())
def test_a_written_tree_is_read_back(tree: Tree) -> None:
    assert parse_tree(format_tree(tree), "text") == tree


@given(trees(), st.data())
def test_a_tree_may_run_over_lines_that_do_not_begin_with_a_bracket(
    tree: Tree, data: st.DataObject
) -> None:
    spaces = st.sampled_from([" ", "\t", "\n ", " \n\n  "])
    text = re.sub(" ", lambda _: data.draw(spaces), format_tree(tree))
    assert read(text) == [tree]


def test_the_files_of_the_treebank_are_read() -> None:
    first, second = read(TREEBANK)
    assert first.label == second.label == ""
    assert first.words() == ["The", "dog", "was", "seen", "*-1", "."]
    assert list(labels(first))[:5] == ["", "S", "NP-SBJ-1", "DT", "NN"]
    assert format_tree(second) == "( (NP (-LRB- -LRB-) (NN end) (-RRB- -RRB-)))"


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("skips", [False, True])
def test_a_tree_without_an_end_is_refused_at_the_limit(skips: bool) -> None:
    line = " " + 10_000 * "(S "
    keys = "x:2 1,048,576; close"
    skipped: list[str] = []
    lines = chain(["(S (NN dog))", "(S"], repeat(line, 50), ["(S (NN cat))"])
    if skips:
        found = list(read_trees(lines, "x", skipped.append))
        assert [tree.words() for tree in found] == [["dog"], ["cat"]]
        (message,) = skipped
        check_message(message, DataError.exit_code, keys)
    else:
        with refuses(DataError, keys):
            list(read_trees(lines, "x", None))


def test_trees_that_share_lines_with_others_have_no_limit_together() -> None:
    lines = ["(S " + 1000 * " ", *repeat("(NN dog)) (S" + 1000 * " ", 2000), "(NN dog))"]
    assert (
        sum(1 for _ in read_trees([lines[0], *(f" {one}" for one in lines[1:])], "x", None)) == 2001
    )


def test_trees_are_read_one_after_another() -> None:
    assert len(list(islice(read_trees(repeat("(S (NN dog))"), "text", None), 3))) == 3


@pytest.mark.parametrize(("text", "keys"), MALFORMED)
def test_a_malformed_tree_is_an_error_with_its_line(text: str, keys: str) -> None:
    for lines in (["(S (NN cat))", text], ["(S (NN cat))", text, "(S (NN mouse))"]):
        with refuses(DataError, f"text:2 {keys}"):
            list(read_trees(lines, "text", None))
    with refuses(DataError, f"text:7 {keys}"):
        parse_tree(text, "text:7")


@pytest.mark.parametrize(("text", "keys"), MALFORMED)
def test_a_malformed_tree_can_be_skipped(text: str, keys: str) -> None:
    skipped: list[str] = []
    lines = ["(S (NN cat))", text, "  (and what belongs to it", "(S (NN mouse))"]
    found = list(read_trees(lines, "text", skipped.append))
    assert [tree.words() for tree in found] == [["cat"], ["mouse"]]
    assert len(skipped) == 1
    is_open = keys == "1 ')'"  # so the next line is its too, and is the malformed one
    assert skipped[0].startswith("text:3:" if is_open else "text:2:")


def test_the_last_tree_can_be_skipped() -> None:
    skipped: list[str] = []
    assert not list(read_trees(["(S (NN cat)"], "text", skipped.append))
    assert len(skipped) == 1


@pytest.mark.parametrize(("line", "number"), [("", 0), ("(A b) (C d)", 2)])
def test_a_line_with_no_or_several_trees_is_refused(line: str, number: int) -> None:
    with refuses(DataError, f"text:3 {number}"):
        parse_tree(line, "text:3")


def test_trees_ten_thousand_deep_are_read_written_and_compared() -> None:
    tree, same = deep_tree(10_000), deep_tree(10_000)
    assert parse_tree(format_tree(tree), "text") == tree
    assert (tree, hash(tree), repr(tree)) == (same, hash(same), repr(same))


@given(trees(), trees())
def test_trees_are_equal_if_their_texts_are(one: Tree, other: Tree) -> None:
    assert (one == other) == (format_tree(one) == format_tree(other))
    assert one != format_tree(one)


def test_space_that_does_not_break_is_part_of_a_word() -> None:
    words = ["5\u00a0mg", "\u2009x"]
    assert split_words("  5\u00a0mg\t\u2009x\u2028") == words
    assert read("(S (NN 5\u00a0mg) (NN \u2009x))")[0].words() == words


@given(st.text())
def test_words_of_any_text_can_be_the_words_of_a_tree(line: str) -> None:
    words = [escape(word) for word in split_words(line)]
    tree = Tree("S", tuple(Tree("XX", (), word) for word in ["first", *words]))
    assert parse_tree(format_tree(tree), "text").words() == ["first", *words]


@needs_data
@pytest.mark.parametrize("path", TREE_FILES, ids=identifier)
def test_the_trees_of_the_test_data_round_trip(path: Path) -> None:
    lines = list(islice(read_lines(path), 300))
    assert [format_tree(tree) for tree in read_trees(lines, str(path), None)] == lines
