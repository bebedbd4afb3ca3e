"""Datasets with the vocabularies of a model, compared with the model's own codec."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nmtkit.config.preprocessing import VocabularyConfig
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.data.audit import PairCounts, SideCounts, describe
from nmtkit.data.binary import Dataset
from nmtkit.data.inherited import fit_warnings
from nmtkit.errors import ConfigError, DamagedError, DataError
from nmtkit.interop import marian_reading
from nmtkit.parsing.trees import format_tree, parse_tree
from nmtkit.parsing.vocabulary import TreeTokens
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import TextCodec
from nmtkit.text.marian import UNKNOWN_LANGUAGES, MarianVocabulary
from nmtkit.text.subword import Subword
from nmtkit.text.vocabulary import Steps
from nmtkit.training.run import open_dataset
from tests.conversions import random_model, write_marian, write_random_model
from tests.messages import refuses
from tests.tiny import (
    TRAIN_LINES,
    prepared,
    tiny_codec,
    tiny_corpus,
    tiny_recipe,
    tiny_train_recipe,
    with_settings,
    write_lines,
)
from tests.trees import TREEBANK

LINES = (*TRAIN_LINES, *map(str.upper, TRAIN_LINES), "bad cab", "(a b), c.", "<bt> x")
TAG = "<bt>"


@cache
def subwords(algorithm: Any) -> TextCodec:
    shared = Subword.train(LINES, algorithm, 295 if algorithm == "bpe" else 290, "x")
    return TextCodec("en", "de", shared, shared, is_shared=True)


@cache
def separate() -> TextCodec:
    source = Subword.train(LINES, "bpe", 295, "x")
    return TextCodec("en", "de", source, tiny_codec().target, is_shared=False)


@cache
def moses() -> TextCodec:
    shared = tiny_codec().source
    assert isinstance(shared, Words)
    sides = [shared.with_steps(Steps(moses_lang=lang)) for lang in ("en", "de")]
    return TextCodec("en", "de", sides[0], sides[1], is_shared=True)


@cache
def marian() -> TextCodec:
    """Return a codec of two models that segment differently, with one list of ids."""
    models = [
        Subword.train(lines, "unigram", 275, "x")
        for lines in (TRAIN_LINES, [line.upper() for line in TRAIN_LINES])
    ]
    pieces = dict.fromkeys(one.piece(index) for one in models for index in range(3, one.size))
    known = [piece for piece in pieces if not piece.startswith("<0x")]
    listed = ["<unk>", "<pad>", "</s>", *known, ">>fra<<"]
    sides = [MarianVocabulary(one.data, listed, "x") for one in models]
    return TextCodec("en", "de", sides[0], sides[1], is_shared=True)


CODECS: dict[str, Callable[[], TextCodec]] = {
    "bpe": lambda: subwords("bpe"),
    "unigram": lambda: subwords("unigram"),
    "words": tiny_codec,
    "bpe and words": separate,
    "moses, words": moses,
    "marian": marian,
}
"""Codecs of models by the manifest's description of their segmentation."""


def model(folder: Path, codec: TextCodec, name: str = "parent") -> str:
    write_random_model(folder / name, codec, {})
    return str(folder / name)


def recipe_of(
    folder: Path, parent: str | TextCodec, *tokens: str, **vocabulary: Any
) -> PreprocessRecipe:
    """Return a recipe with the vocabulary of a model, or of a new one, and further tokens."""
    if isinstance(parent, TextCodec):
        parent = model(folder, parent)
    if tokens:
        vocabulary["whole_tokens"] = str(write_lines(folder / "tokens", tokens))
    recipe = tiny_recipe(*tiny_corpus(folder))
    return replace(recipe, vocabulary=VocabularyConfig(vocabulary_of=parent, **vocabulary))


def with_tag(recipe: PreprocessRecipe, prefix: str, tag: str) -> PreprocessRecipe:
    return with_settings(recipe, tag=(f"{prefix}={tag}",))


@pytest.mark.parametrize("name", CODECS)
def test_the_codec_of_a_dataset_is_the_model_s(tmp_path: Path, name: str) -> None:
    codec = CODECS[name]()
    prepared(recipe_of(tmp_path, codec), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.codec.fingerprint == codec.fingerprint
    (shard,) = dataset.train
    found = sorted((shard.source[i].tolist(), shard.target[i].tolist()) for i in range(len(shard)))
    expected = [(codec.encode_source(x), codec.encode_target(x.upper())) for x in TRAIN_LINES]
    assert found == sorted(expected)
    assert dataset.manifest["segmentation"] == name
    column = "bytes" if name in ("bpe", "unigram") else "unknown"
    assert any(column in line for line in describe(tmp_path / "data", check=True))


def test_a_symbol_for_a_space_stays_text_in_an_extended_vocabulary() -> None:
    old = Subword.train(LINES, "bpe", 295, "x")
    extended = old.with_tokens([TAG])
    for line in ("a\u2581b", f"\u2581 {TAG} \u2581b", f"a {TAG}b \uff3f"):
        assert extended.decode(extended.encode(line)) == extended.normalize(line)
        assert extended.normalize(line) == old.normalize(line)


@pytest.mark.parametrize("keeps_tags", [False, True])
def test_a_parser_s_codec_takes_tokens_in_its_source_only(tmp_path: Path, keeps_tags: bool) -> None:
    trees = TreeTokens.of_trees(map(parse, TREEBANK), keeps_tags)
    words = Words([*{word for one in TREEBANK for word in parse(one).words()}])
    parent = TextCodec("en", "de", words, trees, is_shared=False)
    recipe = recipe_of(tmp_path, parent, "<bt>", "(NEW")
    for name in ("train", "valid"):
        write_lines(tmp_path / f"{name}.en", [" ".join(parse(one).words()) for one in TREEBANK])
        write_lines(tmp_path / f"{name}.de", [format_tree(parse(one)) for one in TREEBANK])
    reports: list[str] = []
    prepared(recipe, tmp_path / "data", reports.append)
    assert reports[0].startswith("added 2 of 2 whole tokens to the source vocabulary; 0 were")
    assert not any("target vocabulary" in line for line in reports)
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.codec.source.size == words.size + 2
    assert dataset.codec.target.data == trees.data
    segmentation = "tagged-trees" if keeps_tags else "trees"
    assert dataset.manifest["segmentation"] == f"words and {segmentation}"
    write_lines(tmp_path / "train.de", ["(A b c)"] * len(TREEBANK))
    with refuses(DataError, "train.de:1"):
        prepared(recipe, tmp_path / "other")


def parse(tree: str) -> Any:
    return parse_tree(tree, "text")


@pytest.mark.parametrize("name", ["bpe", "bpe and words", "moses, words", "marian"])
def test_appended_tokens_are_one_id_each_and_the_others_keep_theirs(
    tmp_path: Path, name: str
) -> None:
    codec = CODECS[name]()
    known = codec.source.piece(codec.encode_source("c")[0]).removeprefix("\u2581")
    tokens = [TAG, "NASA", "XYZ", known]
    reports: list[str] = []
    recipe = recipe_of(tmp_path, codec, *tokens, TAG, "")
    prepared(recipe, tmp_path / "data", reports.append)
    found = Dataset.open(tmp_path / "data").codec
    assert found.is_shared == codec.is_shared
    for own, old in ((found.source, codec.source), (found.target, codec.target)):
        entries = [old.piece(index) for index in range(old.size)]
        assert [own.piece(index) for index in range(old.size)] == entries
        for line in LINES:
            if not any(f" {token}" in f" {line}" for token in tokens):
                assert own.encode(line) == old.encode(line)
        for token in tokens:
            (index,) = own.encode(token)
            assert (index >= old.size) == (own.piece(index) not in entries)
            assert index not in own.unknown_ids
        text = f"{TAG} NASA XYZ {known} NASA"
        assert len(own.encode(text)) == 5
        assert own.decode(own.encode(text)) == own.normalize(text) == text
        assert own.word_ranges(own.encode(text)) == [range(n, n + 1) for n in range(5)]
    side = "shared" if codec.is_shared else "source"
    expected = f"added 3 of 4 whole tokens to the {side} vocabulary; 1 was an entry already"
    assert reports[0] == expected


def test_validation_lines_of_a_model_of_several_languages_need_a_symbol(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, marian(), ">>deu<<")
    (train,), (valid,) = recipe.corpus.train, recipe.corpus.valid
    prepared(recipe, tmp_path / "data")
    training = tiny_train_recipe(max_updates=1, dropout=0.0)
    with refuses(ConfigError, "data validation 1; --tag >>fra<< --validate-metrics"):
        open_dataset(training, tmp_path / "data")
    without = replace(training.validation, validate_metrics="none", best_metric="nll")
    open_dataset(replace(training, validation=without), tmp_path / "data")
    tags = tuple(f"{one}=>>deu<<" for one in (train, valid))
    prepared(with_settings(recipe, tag=tags), tmp_path / "tagged")
    open_dataset(training, tmp_path / "tagged")


@pytest.mark.parametrize(
    ("name", "token", "keys"),
    [
        ("words", "</s>", "</s>"),
        ("unigram", 8000 * "x", "8,003"),
        ("moses, words", "(NP", "NP"),
    ],
)
def test_a_token_that_cannot_be_an_entry_is_named(
    tmp_path: Path, name: str, token: str, keys: str
) -> None:
    recipe = recipe_of(tmp_path, CODECS[name](), token)
    with refuses(DataError, f"/tokens {keys}"):
        prepared(recipe, tmp_path / "data")


@pytest.mark.parametrize("name", ["bpe", "unigram", "marian"])
def test_appended_tokens_are_exported_to_marian(tmp_path: Path, name: str) -> None:
    tokens = [TAG, "NASA", *([">>deu<<"] if name == "marian" else [])]
    recipe = recipe_of(tmp_path, CODECS[name](), *tokens)
    prepared(recipe, tmp_path / "data")
    codec = Dataset.open(tmp_path / "data").codec
    exported = marian_reading.read(
        write_marian(random_model(codec, {"norm": "post"}), tmp_path / "exported")
    )
    for line in [*LINES, *(f"{token} a b NASA" for token in tokens)]:
        assert exported.codec.encode_source(line) == codec.encode_source(line)
        assert exported.codec.encode_target(line) == codec.encode_target(line)


# ------------------------------------------------------------------------------------ languages


@pytest.mark.parametrize(
    ("own", "wanted", "keys"),
    [
        (("de", "en"), ("en", "de"), "parent de en; -s de -t en vocabulary.vocabulary_of"),
        (("eng", "deu"), ("en", "de"), "parent eng deu en de; -s eng -t deu PREFIX.eng PREFIX.deu"),
        (("en", "fr"), ("en", "de"), "parent fr de"),
        (UNKNOWN_LANGUAGES, ("en", "de"), "parent source target en"),
    ],
)
def test_another_language_is_refused_before_the_text_is_read(
    tmp_path: Path, own: tuple[str, str], wanted: tuple[str, str], keys: str
) -> None:
    codec = replace(tiny_codec(), source_lang=own[0], target_lang=own[1])
    recipe = recipe_of(tmp_path, codec)
    recipe = with_settings(recipe, source_lang=wanted[0], target_lang=wanted[1])
    reports: list[str] = []
    with refuses(ConfigError, keys):
        prepared(recipe, tmp_path / "data", reports.append)
    assert not reports  # the text was not read


@pytest.mark.parametrize("own", [UNKNOWN_LANGUAGES, ("en", "target"), ("source", "de")])
def test_an_imported_model_without_languages_has_those_of_the_text(
    tmp_path: Path, own: tuple[str, str]
) -> None:
    parent = model(tmp_path, replace(marian(), source_lang=own[0], target_lang=own[1]))
    prepared(recipe_of(tmp_path, parent), tmp_path / "data")
    codec = Dataset.open(tmp_path / "data").codec
    assert (codec.source_lang, codec.target_lang) == ("en", "de")


# ------------------------------------------------------------------------- what is not a model


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    parent = Path(model(tmp_path, tiny_codec()))
    (parent / "codec" / "shared.txt").write_text("x\n")
    with refuses(DamagedError, "shared.txt"):
        prepared(recipe_of(tmp_path, str(parent)), tmp_path / "data")
    with refuses(DamagedError, "absent"):
        prepared(recipe_of(tmp_path, str(tmp_path / "absent")), tmp_path / "data")
    with refuses(DamagedError, "train.en"):
        prepared(recipe_of(tmp_path, str(tmp_path / "train.en")), tmp_path / "data")


# ------------------------------------------------------------------------------ text that fits


def counts(source: SideCounts, target: SideCounts) -> PairCounts:
    return replace(PairCounts.none(), read=10, source=source, target=target)


@pytest.mark.parametrize("unknown", [0, 5, 6])
def test_more_unknown_tokens_than_5_percent_are_a_warning(unknown: int) -> None:
    found = list(
        fit_warnings(separate(), counts(SideCounts(100, unknown, 9), SideCounts(100, 0, 9)))
    )
    assert len(found) == (unknown > 5)
    assert not list(fit_warnings(separate(), PairCounts.none()))


def test_a_text_that_does_not_fit_is_a_warning_with_side_share_and_cause(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, separate())
    write_lines(tmp_path / "train.en", ["\u0431\u0432"] * len(TRAIN_LINES))
    reports: list[str] = []
    prepared(recipe, tmp_path / "data", reports.append)
    (warning,) = [line for line in reports if "vocabulary" in line and "warning" in line]
    # Each line has a space symbol, 2 characters of 2 bytes, and the end symbol.
    assert warning == (
        "warning: 66.7% of the source's tokens are bytes, above 5%: the model's vocabulary does "
        "not fit a text whose characters are of another language or script; check the files and "
        "--source-lang, or learn a vocabulary for a new model"
    )
    write_lines(tmp_path / "train.de", ["X Y"] * len(TRAIN_LINES))
    prepared(recipe, tmp_path / "other", reports.append)
    assert "66.7% of the target's tokens are unknown" in reports[-1] + "".join(reports)


# -------------------------------------------------------------------------------- other options


@pytest.mark.parametrize(
    ("name", "text"), [("bpe", "train"), ("words", "valid"), ("marian", "train")]
)
def test_a_tag_must_be_an_entry_of_an_inherited_vocabulary(
    tmp_path: Path, name: str, text: str
) -> None:
    recipe = recipe_of(tmp_path, CODECS[name]())
    with refuses(ConfigError, "<new>; --whole-tokens --tag"):
        prepared(with_tag(recipe, str(tmp_path / text), "<new>"), tmp_path / "data")


def test_a_model_gets_marks_after_its_entries(tmp_path: Path) -> None:
    codec = subwords("bpe")
    prepared(recipe_of(tmp_path, codec, marks=3), tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    assert dataset.codec.num_marks == dataset.manifest["marks"] == 3
    assert dataset.codec.source.size > codec.source.size
    assert dataset.codec.source.encode("bad cab") == codec.source.encode("bad cab")
    assert any("3 marks" in line for line in describe(dataset.folder, check=False))


def test_a_vocabulary_of_words_takes_no_marks(tmp_path: Path) -> None:
    with refuses(ConfigError, "marks; --marks vocabulary.marks"):
        prepared(recipe_of(tmp_path, tiny_codec(), marks=3), tmp_path / "data")
