from dataclasses import replace

import pytest

from nmtkit.config.preprocessing import (
    CorpusConfig,
    TextEntry,
    VocabularyConfig,
    first_words_of,
    is_shared,
    segmentations,
    training_texts,
    valid_texts,
)
from nmtkit.config.schema import PreprocessRecipe, Values
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError
from tests.messages import refuses


@pytest.mark.parametrize(
    ("target", "expected"), [("same", ("words", "words")), ("bpe", ("words", "bpe"))]
)
def test_a_target_is_segmented_as_the_source_unless_it_says_otherwise(
    target: str, expected: tuple[str, str]
) -> None:
    config = VocabularyConfig(segmentation="words", target_segmentation=target)
    assert segmentations(config) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (VocabularyConfig(), True),
        (VocabularyConfig(separate_vocabularies=True), False),
        (VocabularyConfig(source_vocabulary="a", target_vocabulary="b/../a"), True),
        (VocabularyConfig(source_vocabulary="a", target_vocabulary="b"), False),
        (VocabularyConfig(segmentation="bpe", target_segmentation="unigram"), False),
    ],
)
def test_sides_share_a_vocabulary_unless_a_setting_separates_them(
    config: VocabularyConfig, expected: bool
) -> None:
    assert is_shared(config) == expected


def test_the_same_file_is_not_shared_by_sides_that_are_segmented_differently() -> None:
    config = VocabularyConfig(
        segmentation="words",
        target_segmentation="bpe",
        source_vocabulary="one",
        target_vocabulary="one",
    )
    assert not is_shared(config)


def texts(*train: str, tag: tuple[str, ...] = ()) -> list[TextEntry]:
    return training_texts(CorpusConfig(train=train, tag=tag))


@pytest.mark.parametrize(
    ("entry", "prefix", "weight"),
    [
        ("news", "news", 1.0),
        ("news=2", "news", 2.0),
        ("news=0.5", "news", 0.5),
        ("/a=b/news", "/a=b/news", 1.0),
        ("/a=b/news=3", "/a=b/news", 3.0),
        ("=2", "=2", 1.0),
    ],
)
def test_a_number_after_the_last_equals_sign_is_a_weight(
    entry: str, prefix: str, weight: float
) -> None:
    assert texts(entry) == [TextEntry(prefix, weight, "")]


def test_a_tag_goes_to_the_text_of_its_prefix() -> None:
    found = texts("news", "bt=2", tag=("bt=<bt>",))
    assert found == [TextEntry("news", 1.0, ""), TextEntry("bt", 2.0, "<bt>")]


@pytest.mark.parametrize(
    ("train", "tag", "keys"),
    [
        ("news=0", (), "train news=0 0.001 1000 corpus.train"),
        ("news=-1", (), "train news=-1"),
        ("news=nan", (), "train news=nan"),
        ("news", ("web=<bt>",), "tag web=<bt> PREFIX=TAG"),
        ("news", ("news=",), "tag news="),
        ("news", ("news=<b t>",), "tag news=<b t>"),
        ("news", ("<bt>",), "tag <bt>"),
        ("news", ("news=<s>",), "tag news=<s> <s>"),
    ],
)
def test_bad_weights_and_tags_are_refused(train: str, tag: tuple[str, ...], keys: str) -> None:
    values = {"source_lang": "en", "target_lang": "de", "valid": "dev"}
    with refuses(ConfigError, keys):
        build(PreprocessRecipe, {**values, "train": (train,), "tag": tag})


def test_a_tag_may_be_of_the_validation_text() -> None:
    config = CorpusConfig(train=("a",), valid=("dev",), tag=("dev=<bt>", "a=<x>"))
    assert [one.tag for one in valid_texts(config)] == ["<bt>"]
    assert first_words_of(replace(config, tag=(*config.tag, "a=<bt>"))) == ["<bt>"]
    assert first_words_of(config) == ["<x>", "<bt>"]
    assert [one.tag for one in valid_texts(replace(config, tag=("a=<x>",)))] == [""]


def test_good_weights_and_tags_are_accepted() -> None:
    tags = ("a=<bt>", "c=x", "dev=<bt>")
    values: Values = {"source_lang": "en", "target_lang": "de", "valid": "dev", "tag": tags}
    recipe = build(PreprocessRecipe, {**values, "train": ("a=0.001", "b=1000", "c")})
    assert recipe.corpus.tag == tags
