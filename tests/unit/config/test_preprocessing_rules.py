from typing import Any

import pytest

from nmtkit.config.preprocessing import first_words_of, training_texts
from nmtkit.config.schema import PreprocessRecipe, Value
from nmtkit.config.toml import build, dumps, loads
from nmtkit.errors import ConfigError
from tests.messages import refuses

TWO: dict[str, Value] = {
    "train": ("ted:en-nl", "a:b/web:en-sv=0.5"),
    "valid": ("dev:en-nl", "dev:en-sv"),
}


def test_the_last_colon_separates_the_direction() -> None:
    texts = training_texts(build(PreprocessRecipe, TWO).corpus)
    assert [(one.prefix, one.direction, one.weight) for one in texts] == [
        ("ted", "en-nl", 1.0),
        ("a:b/web", "en-sv", 0.5),
    ]


def test_source_lines_begin_with_the_symbols_of_their_direction_then_the_tag() -> None:
    values = {**TWO, "tag": ("ted:en-nl=<bt>",), "source_symbols": True}
    corpus = build(PreprocessRecipe, values).corpus
    nl, sv = (one.first_words(corpus) for one in training_texts(corpus))
    assert nl == ["<2nl>", "<from-en>", "<bt>"]
    assert sv == ["<2sv>", "<from-en>"]
    assert first_words_of(corpus) == ["<2nl>", "<from-en>", "<bt>", "<2sv>"]


TABLES = """
[[corpora]]
direction = "en-nl"
train = "ted"
valid = "dev"
tag = "ted=<bt>"
[[corpora]]
direction = "en-sv"
train = ["ted", "a:b/web=0.5"]
valid = "dev"
held_out = "test"
"""


def test_tables_of_corpora_are_the_texts_of_flags() -> None:
    recipe = loads(TABLES, PreprocessRecipe, "recipe")
    assert recipe.corpus.train == ("ted:en-nl", "ted:en-sv", "a:b/web:en-sv=0.5")
    assert recipe.corpus.valid == ("dev:en-nl", "dev:en-sv")
    assert (recipe.corpus.tag, recipe.filters.held_out) == (("ted:en-nl=<bt>",), ("test:en-sv",))
    assert loads(dumps(recipe), PreprocessRecipe, "recipe") == recipe


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        ("train = 'ted'", "corpora '' direction train valid held_out tag"),
        ("direction = 'en-nl'\nweight = 2", "corpora en-nl"),
        ("direction = 'en-nl'\ntrain = 2", "corpora en-nl"),
    ],
)
def test_a_wrong_table_of_corpora_is_refused(table: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        loads(f"[[corpora]]\n{table}", PreprocessRecipe, "recipe")


def test_corpora_are_tables() -> None:
    with refuses(ConfigError, "corpora; [[corpora]]"):
        loads("corpora = 2", PreprocessRecipe, "recipe")


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"source_lang": "en"}, "source_lang directions"),
        ({"train": ("ted:en-nl", "web")}, "train web; web:SRC-TGT"),
        ({"valid": ("dev:en-nl", "dev")}, "valid dev; dev:SRC-TGT"),
        ({"held_out": ("test",)}, "held_out test; test:SRC-TGT"),
        ({"train": ("ted:en-en",)}, "train ted:en-en; two"),
        ({"train": ("ted:en-nl", "ted:en-nl=2")}, "train ted:en-nl twice"),
        ({"valid": ("a:en-nl", "b:en-nl")}, "valid en-nl twice"),
        ({"separate_vocabularies": True}, "joint; --separate-vocabularies"),
        ({"target_segmentation": "words"}, "joint; --target-segmentation"),
        ({"tokenizer": "moses"}, "tokenizer moses directions"),
        ({"valid_alignments": "dev.links"}, "valid_alignments"),
        ({"segmentation": "words", "vocabulary_temperature": 2}, "vocabulary_temperature"),
        ({"vocabulary_temperature": 0.2}, "vocabulary_temperature 0.2 1"),
    ],
)
def test_settings_that_contradict_directions_are_refused(values: dict[str, Any], keys: str) -> None:
    with refuses(ConfigError, keys):
        build(PreprocessRecipe, {**TWO, **values})


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({}, "source_lang target_lang; --source-lang --target-lang PREFIX:SRC-TGT"),
        ({"source_lang": "en", "target_lang": "nl", "source_symbols": True}, "source_symbols"),
        ({"source_lang": "en", "target_lang": "nl", "valid": ("a", "b")}, "valid 2; concatenate"),
    ],
)
def test_settings_of_directions_need_directions(values: dict[str, Any], keys: str) -> None:
    with refuses(ConfigError, keys):
        build(PreprocessRecipe, {"train": ("ted",), "valid": ("dev",), **values})
