"""Each word gets the same number on both sides, and nothing else changes."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given

from examples.wsj.numbered import marks, numbered_tree, numbered_words
from nmtkit.errors import DataError
from nmtkit.parsing.linearize import linearize, restore
from nmtkit.parsing.trees import Tree, format_tree, parse_tree, split_words
from nmtkit.text.subword import SPACE_SYMBOL, Subword
from tests.recipes import ROOT
from tests.trees import trees

TREE = "(TOP (S (NP (DT the) (NN bank)) (VBZ is)))"


def tags(tree: Tree) -> list[str]:
    return [node.label for node in tree.nodes() if node.word is not None]


def test_marks_repeat_after_eighty_words() -> None:
    first = list(islice(marks(), 3 * 80))
    assert len({*first[:80]}) == 80
    assert first == first[:80] * 3


@given(trees())
def test_a_tree_whose_numbers_are_dropped_is_the_tree(tree: Tree) -> None:
    numbered = numbered_tree(tree)
    assert numbered.words() == tree.words()
    untagged = (linearize(one, False, "brackets") for one in (numbered, tree))
    assert next(untagged) == next(untagged)
    tokens = linearize(numbered, True, "brackets")
    assert restore(tokens, tree.words(), "brackets") == numbered


@given(trees())
def test_a_word_s_mark_is_its_tag_and_stands_before_it_in_the_source(tree: Tree) -> None:
    words = tree.words()
    numbered = split_words(numbered_words(" ".join(words)))
    assert numbered == list(map(str.__add__, tags(numbered_tree(tree)), words))


@pytest.mark.parametrize(("line", "num_words"), [("", 0), (" a  b ", 2), ("10\u00a0% a\u202fb", 2)])
def test_the_number_of_words_does_not_change(line: str, num_words: int) -> None:
    assert len(split_words(numbered_words(line))) == num_words


def test_a_mark_is_always_a_separate_subword() -> None:
    line = numbered_words("we see one protein")
    subword = Subword.train([line] * 50, "bpe", 288, "words")
    pieces = [subword.piece(index).removeprefix(SPACE_SYMBOL) for index in subword.encode(line)]
    assert "protein" in pieces
    assert {*pieces} >= {*islice(marks(), 4)}


def run(kind: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.wsj.numbered", kind, path],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_the_command_writes_the_lines_of_a_file_as_numbered_ones(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text(f"{TREE}\n" * 2, "utf-8")
    done = run("trees", path)
    numbered = format_tree(numbered_tree(parse_tree(TREE, "test")))
    assert (done.stdout, done.stderr) == (f"{numbered}\n" * 2, "")
    path.write_text("the bank\n\nis\n", "utf-8")
    done = run("words", path)
    expected = [numbered_words(line) for line in ("the bank", "", "is")]
    assert (done.stdout, done.stderr) == ("".join(f"{line}\n" for line in expected), "")


def test_a_malformed_tree_is_reported_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("(TOP (NP (DT the\n", "utf-8")
    refused = run("trees", path)
    assert refused.returncode == DataError.exit_code
    assert refused.stderr.startswith(f"numbered: error: {path}:1: ")
