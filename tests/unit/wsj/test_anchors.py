"""Frequent words stand for their tags, and nothing else changes."""

import subprocess
import sys
from pathlib import Path

from examples.wsj.anchors import MIN_COUNT, anchored, frequent_words
from nmtkit.errors import DataError
from nmtkit.text.linearised import linearize
from nmtkit.text.trees import Tree, parse_tree
from tests.recipes import ROOT

TREE = "(TOP (S (NP (DT The) (NN index)) (VP (VBZ falls)) (. .)))"


def tree(text: str = TREE) -> Tree:
    return parse_tree(text, "test")


def test_words_that_are_as_frequent_are_counted_in_lower_case() -> None:
    trees = [tree(), tree("(TOP (NP (DT the) (NN Index) (NN index)))")]
    assert frequent_words(trees, 2) == {"the", "index"}
    assert frequent_words(trees, 3) == {"index"}


def test_frequent_words_are_tags_and_brackets_are_as_they_were() -> None:
    result = anchored(tree(), {"the", "falls"})
    assert [leaf.label for leaf in result.preterminals()] == ["the", "NN", "falls", "."]
    assert result.words() == tree().words()
    assert list(linearize(result, False)) == list(linearize(tree(), False))


def test_the_command_counts_in_one_file_and_writes_the_trees_of_another(tmp_path: Path) -> None:
    path = tmp_path / "train.trees"
    path.write_text(f"{TREE}\n" * MIN_COUNT, "utf-8")

    def run(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "examples.wsj.anchors", str(path)]
        return subprocess.run(
            command, cwd=ROOT, input=text, capture_output=True, encoding="utf-8", check=False
        )

    done = run("(TOP (NP (DT the) (NN bank)))\n")
    assert (done.stdout, done.stderr) == ("(TOP (NP (the the) (NN bank)))\n", "")
    refused = run("(TOP (NP (DT the\n")
    assert refused.returncode == DataError.exit_code
    assert refused.stderr.startswith("anchors: error: standard input:1")
