from pathlib import Path

import pytest
from hypothesis import assume, given

from nmtkit.config import preprocessing as config
from nmtkit.errors import DataError
from nmtkit.parsing.linearize import IS_CHILD_FIRST, complete, linearize
from nmtkit.parsing.trees import Tree, format_tree, parse_tree
from nmtkit.parsing.vocabulary import TREE_VOCABULARIES, TreeTokens
from nmtkit.parsing.well_formed import RULES
from nmtkit.symbols import UNK_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from tests.messages import refuses
from tests.trees import TREEBANK, parser_codec, trees


def pieces(tokens: TreeTokens) -> list[str]:
    return [tokens.piece(index) for index in range(3, tokens.size)]


def test_without_tags_one_token_stands_for_all_of_them() -> None:
    target = parser_codec().target
    assert isinstance(target, TreeTokens)
    frequent = "XX (NP (TOP )NP )TOP (S (VP )S )VP"
    assert pieces(target) == frequent.split()


def test_tags_can_be_kept() -> None:
    target = parser_codec(keeps_tags=True).target
    assert isinstance(target, TreeTokens)
    assert {"D", "N", "V", "P"} < {*pieces(target)}
    assert "XX" not in pieces(target)


@pytest.mark.parametrize("text", TREEBANK)
def test_a_tree_comes_back_with_the_words_of_its_source(text: str) -> None:
    codec = parser_codec(keeps_tags=True)
    words = parse_tree(text, "text").words()
    assert codec.complete(codec.decode_target(codec.encode_target(text)), " ".join(words)) == (
        text,
        False,
    )


@pytest.mark.parametrize("linearization", TREE_VOCABULARIES)
@given(trees())
def test_any_tree_comes_back(linearization: str, tree: Tree) -> None:
    text, source = format_tree(tree), " ".join(tree.words())
    assume("<unk>" not in text)  # the symbol of unknown tokens, which `complete` replaces
    tokens = TREE_VOCABULARIES[linearization].of_trees([tree], keeps_tags=True)
    decoded = tokens.decode(tokens.encode(text))
    assert decoded == tokens.normalize(text) == " ".join(linearize(tree, True, linearization))
    assert complete(linearization, decoded, source) == (text, False)


def test_labels_missing_in_the_vocabulary_are_unknown_except_tags() -> None:
    target = parser_codec().target
    assert target.decode(target.encode("(TOP (ADJP (NEW a)))")) == "(TOP <unk> XX <unk> )TOP"
    assert parser_codec(keeps_tags=True).target.encode("(TOP (NEW a))")[1] == UNK_ID


def test_labels_that_no_vocabulary_can_hold_are_unknown() -> None:
    tree = Tree("TOP", (Tree("<unk>", (), "a"), Tree("N\u00a0P", (), "b"), Tree("N", (), "c")))
    tokens = TreeTokens.of_trees([tree], keeps_tags=True)
    assert sorted(pieces(tokens)) == ["(TOP", ")TOP", "N"]


def test_a_vocabulary_of_no_trees_is_refused() -> None:
    with refuses(DataError, "tree training text"):
        TreeTokens.of_trees([], keeps_tags=True)


def test_a_parse_of_no_words_is_blank() -> None:
    codec = parser_codec()
    assert codec.complete("(TOP XX )TOP", " ") == ("", None)
    assert codec.complete("(TOP XX", "a") == ("(TOP (XX a))", True)
    assert codec.target.encode(" ") == []


@pytest.mark.parametrize("line", ["(TOP (N a)", "a b", "(TOP (N a)) (TOP (N b))"])
def test_a_line_that_is_no_tree_is_refused(line: str) -> None:
    with refuses(DataError, "tree"):
        parser_codec().encode_target(line)


def test_other_codecs_complete_nothing() -> None:
    words = Words(["(NP", ")NP", "XX"])
    codec = TextCodec("a", "b", words, words, is_shared=True)
    assert codec.complete("(NP XX )NP", "word") == ("(NP XX )NP", None)
    assert codec.decode_target(codec.encode_target("(NP XX )NP")) == "(NP XX )NP"


@pytest.mark.parametrize("linearization", TREE_VOCABULARIES)
def test_it_is_saved_and_loaded(tmp_path: Path, linearization: str) -> None:
    codec = parser_codec(linearization=linearization)
    codec.save(tmp_path)
    loaded = TextCodec.load(tmp_path)
    assert loaded.fingerprint == codec.fingerprint
    assert isinstance(loaded.target, TreeTokens)
    assert loaded.target.linearization == linearization
    for text in TREEBANK:
        assert loaded.encode_target(text) == codec.encode_target(text)


def test_every_linearization_is_in_every_table() -> None:
    tables = config.LINEARIZATIONS, IS_CHILD_FIRST, RULES, TREE_VOCABULARIES
    assert {tuple(table) for table in tables} == {("brackets", "in-order")}
    for name, vocabulary in TREE_VOCABULARIES.items():
        assert (vocabulary.linearization, vocabulary.kind) == (name, config.LINEARIZATIONS[name])


def test_a_codec_of_another_linearization_is_another_codec() -> None:
    one, other = (parser_codec(linearization=name) for name in TREE_VOCABULARIES)
    assert one.target.data == other.target.data
    assert one.fingerprint != other.fingerprint
