"""Datasets whose target side is parses of the source."""

from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.preprocessing import CorpusConfig, VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.errors import DataError
from nmtkit.parsing.linearize import linearize
from nmtkit.parsing.trees import format_tree, parse_tree
from nmtkit.parsing.vocabulary import TreeTokens, read_parses
from nmtkit.text.codec import TextCodec
from nmtkit.text.corpus import Corpus
from nmtkit.text.lines import MAX_LINE_BYTES
from tests.messages import refuses
from tests.tiny import prepared, write_lines
from tests.trees import TREEBANK


def write_text(folder: Path, name: str, trees: list[str]) -> Corpus:
    sources = [" ".join(parse_tree(tree, "text").words()) if tree else "" for tree in trees]
    write_lines(folder / f"{name}.words", sources)
    write_lines(folder / f"{name}.trees", trees)
    return Corpus.find(str(folder / name), "words", "trees")


def recipe_of(folder: Path, **vocabulary: Any) -> PreprocessRecipe:
    settings = {"segmentation": "words", "target_segmentation": "trees", **vocabulary}
    return PreprocessRecipe(
        corpus=CorpusConfig(
            source_lang="words",
            target_lang="trees",
            train=(str(folder / "train"),),
            valid=(str(folder / "valid"),),
        ),
        vocabulary=VocabularyConfig(**settings),
    )


def make(folder: Path, recipe: PreprocessRecipe) -> TextCodec:
    prepared(recipe, folder / "data")
    return TextCodec.load(folder / "data" / "codec")


def test_the_trees_of_all_texts_are_read_except_blank_lines(tmp_path: Path) -> None:
    corpora = [
        write_text(tmp_path, "one", [TREEBANK[0], "", TREEBANK[1]]),
        write_text(tmp_path, "two", [TREEBANK[2]]),
    ]
    assert [format_tree(tree) for tree in read_parses(corpora)] == [*TREEBANK[:3]]


def test_a_tree_of_a_line_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    corpus = write_text(tmp_path, "one", [TREEBANK[0], "(TOP (N a))", TREEBANK[1]])
    lines = corpus.source.read_text().split("\n")
    lines[1] = "a" * (MAX_LINE_BYTES + 1)
    corpus.source.write_text("\n".join(lines))
    corpus = Corpus.find(corpus.prefix, "words", "trees")
    assert [format_tree(tree) for tree in read_parses([corpus])] == [*TREEBANK[:2]]


@pytest.mark.parametrize(
    ("tree", "keys"),
    [
        ("(TOP (N a)", "train.trees:2"),
        ("(TOP (N a) (N b))", "train.trees:2 2 train.words:2 1; nmtkit trees words"),
    ],
)
def test_a_line_that_is_no_parse_of_its_source_is_an_error(
    tmp_path: Path, tree: str, keys: str
) -> None:
    write_text(tmp_path, "train", [TREEBANK[0], "(TOP (N a))"])
    write_lines(tmp_path / "train.trees", [TREEBANK[0], tree])
    with refuses(DataError, keys):
        TreeTokens.check([Corpus.find(str(tmp_path / "train"), "words", "trees")])


@pytest.mark.parametrize(("linearization", "order"), [("brackets", ""), ("in-order", "in-order ")])
@pytest.mark.parametrize(
    ("segmentation", "tags"), [("trees", ["XX"]), ("tagged-trees", list("DNPV"))]
)
def test_a_dataset_of_parses_is_made(
    tmp_path: Path, segmentation: str, tags: list[str], linearization: str, order: str
) -> None:
    write_text(tmp_path, "train", [*TREEBANK])
    write_text(tmp_path, "valid", [TREEBANK[0]])
    settings = {"target_segmentation": segmentation, "linearization": linearization}
    codec = make(tmp_path, recipe_of(tmp_path, **settings))
    assert codec.segmentation == f"words and {order}{segmentation}"
    tree = parse_tree(TREEBANK[0], "text")
    expected = linearize(tree, segmentation == "tagged-trees", linearization)
    assert codec.target.decode(codec.target.encode(TREEBANK[0])).split() == expected
    pieces = [codec.target.piece(index) for index in range(3, codec.target.size)]
    assert sorted(piece for piece in pieces if piece[0] not in "()") == tags
    assert codec.source.kind == "words"
    assert not codec.is_shared


def test_the_vocabulary_may_be_given(tmp_path: Path) -> None:
    write_text(tmp_path, "train", [*TREEBANK])
    write_text(tmp_path, "valid", [TREEBANK[0]])
    path = write_lines(tmp_path / "labels", ["(TOP", ")TOP", "XX", "(S", ")S"])
    settings = {"target_vocabulary": str(path), "linearization": "in-order"}
    codec = make(tmp_path, recipe_of(tmp_path, **settings))
    assert (codec.target.size, codec.target.kind) == (8, "in-order-trees")


@pytest.mark.parametrize("name", ["train", "valid"])
@pytest.mark.parametrize("is_given", [False, True])
def test_malformed_trees_are_found_first(tmp_path: Path, name: str, is_given: bool) -> None:
    write_text(tmp_path, "train", [*TREEBANK])
    write_text(tmp_path, "valid", [*TREEBANK])
    write_lines(tmp_path / f"{name}.trees", ["no tree", *TREEBANK[1:]])
    path = write_lines(tmp_path / "labels", ["(TOP", ")TOP", "XX"])
    recipe = recipe_of(tmp_path, **({"target_vocabulary": str(path)} if is_given else {}))
    reports: list[str] = []
    with refuses(DataError, f"{name}.trees:1 no"):
        prepared(recipe, tmp_path / "data", reports.append)
    assert not [line for line in reports if "words" in line and line.startswith("counting")]
