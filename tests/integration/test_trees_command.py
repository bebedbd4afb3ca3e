"""`nmtkit trees` from text to text, and a parser from its treebank to a drawing."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.config.toml import dumps
from nmtkit.parsing.trees import parse_tree
from tests.commands import nmtkit_in_text
from tests.messages import refused
from tests.tiny import tiny_train_recipe
from tests.trees import TREEBANK

RAW = """\
( (S (NP-SBJ-1 (DT The) (NN dog))
     (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)))) (. .)))
"""
CLEAN = "(TOP (S (NP (DT The) (NN dog)) (VP (VBD was) (VP (VBN seen))) (. .)))\n"
TOKENS = "(TOP (S (NP XX XX )NP (VP XX (VP XX )VP )VP XX )S )TOP\n"
TAGGED = "(TOP (S (NP DT NN )NP (VP VBD (VP VBN )VP )VP . )S )TOP\n"
IN_ORDER = "DT (NP NN )NP (S VBD (VP VBN (VP )VP )VP . )S (TOP )TOP\n"
BAD = "(S (NN dog)\n(S the dog)\n"


def output(*arguments: object, stdin: str = "") -> str:
    done = nmtkit_in_text(*arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_trees_are_cleaned_linearised_and_restored(tmp_path: Path) -> None:
    assert output("trees", "clean", stdin=RAW) == CLEAN
    assert output("trees", "words", stdin=CLEAN) == "The dog was seen .\n"
    assert output("trees", "linearize", stdin=CLEAN) == TOKENS
    assert output("trees", "linearize", "--tags", stdin=CLEAN) == TAGGED
    words = tmp_path / "words"
    words.write_text("The dog was seen .\n", encoding="utf-8")
    restored = nmtkit_in_text("trees", "restore", "--words", words, stdin=TAGGED)
    assert restored.stdout == CLEAN
    assert restored.stderr == "trees: 1, repaired: 0\n"
    in_order = ("--linearization", "in-order")
    assert output("trees", "linearize", *in_order, "--tags", stdin=CLEAN) == IN_ORDER
    restored = nmtkit_in_text("trees", "restore", *in_order, "--words", words, stdin=IN_ORDER)
    assert (restored.stdout, restored.stderr) == (CLEAN, "trees: 1, repaired: 0\n")


def test_words_and_tokens_must_have_equally_many_lines(tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("a\nb\n", encoding="utf-8")
    done = nmtkit_in_text("trees", "restore", "--words", words, stdin="XX\n")
    refused(done, 3, f"standard input 1 {words}")


@pytest.mark.parametrize("name", ["clean", "words", "linearize", "info"])
def test_malformed_trees_are_an_error_or_are_skipped(name: str) -> None:
    ended = nmtkit_in_text("trees", name, stdin=RAW + BAD)
    refused(ended, 3, "standard input:3 tree")
    skipped = nmtkit_in_text("trees", name, "--skip-malformed", stdin=RAW + BAD)
    assert skipped.returncode == 0
    assert "warning: skipped 2 malformed trees; the first: standard input:3" in skipped.stderr
    assert skipped.stdout == output("trees", name, stdin=RAW)


def test_raw_text_is_split_into_words() -> None:
    assert output("trees", "tokenize", stdin="He won't (go).\n\n") == (
        "He wo n't -LRB- go -RRB- .\n\n"
    )


def test_trees_are_counted() -> None:
    assert "trees\t1\n" in output("trees", "info", stdin=RAW)


def test_the_group_lists_its_commands_in_the_order_of_use() -> None:
    text = output("trees", "--help")
    names = ["clean", "words", "linearize", "restore", "tokenize", "info"]
    places = [text.index(f"\n  {name} ") for name in names]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ((), "command; clean words linearize restore tokenize info"),
        (("cleen",), "cleen; clean nmtkit trees --help"),
    ],
)
def test_a_command_of_the_group_must_be_known(arguments: tuple[str, ...], keys: str) -> None:
    done = nmtkit_in_text("trees", *arguments)
    refused(done, 2, keys)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("linearization", ["brackets", "in-order"])
def test_a_parser_is_trained_and_parses_in_one_pipe(tmp_path: Path, linearization: str) -> None:
    for name in ("train", "valid"):
        trees = "".join(f"{tree}\n" for tree in TREEBANK * 3)
        (tmp_path / f"{name}.trees").write_text(trees, encoding="utf-8")
        words = output("trees", "words", stdin=trees)
        (tmp_path / f"{name}.words").write_text(words, encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    tiny = tiny_train_recipe(max_updates=4, dropout=0.1)
    larger = replace(tiny, training=replace(tiny.training, update_tokens=100, max_tokens=50))
    recipe.write_text(dumps(larger), encoding="utf-8")
    made = nmtkit_in_text(
        *f"preprocess -s words -t trees --train {tmp_path}/train --valid {tmp_path}/valid".split(),
        *f"--segmentation words --target-segmentation trees --out {tmp_path}/data".split(),
        *("--workers", 1, "--linearization", linearization),
    )
    assert made.returncode == 0, made.stderr
    trained = nmtkit_in_text(
        "train", tmp_path / "data", "--config", recipe, "--out", tmp_path / "run"
    )
    assert trained.returncode == 0, trained.stderr
    translate = ("translate", tmp_path / "run", "--device", "cpu", "--beam", 2)
    translated = nmtkit_in_text(*translate, stdin="a b c\n\nd (\n")
    assert (translated.returncode, translated.stderr) == (0, "trees: 2, repaired: 0\n")
    parses = translated.stdout.split("\n")
    assert [parse_tree(tree, "text").words() for tree in (parses[0], parses[2])] == [
        ["a", "b", "c"],
        ["d", "-LRB-"],
    ]
    assert parses[1] == ""
    scored = nmtkit_in_text(
        *f"score --model {tmp_path}/run --source {tmp_path}/valid.words".split(),
        stdin=(tmp_path / "valid.trees").read_text("utf-8"),
    )
    assert scored.returncode == 0, scored.stderr
    assert len(scored.stdout.split()) >= len(TREEBANK) * 3
