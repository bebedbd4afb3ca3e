from collections.abc import Mapping

import pytest

from nmtkit.config.fields import Value
from nmtkit.config.schema import AttentionRecipe, PreprocessRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError

CORPUS: Mapping[str, Value] = {
    "source_lang": "en",
    "target_lang": "de",
    "train": ("train",),
    "valid": "valid",
}
OWN_SOURCE: Mapping[str, Value] = {"source_vocabulary": "s.model", "separate_vocabularies": True}
OWN_TARGET: Mapping[str, Value] = {"target_vocabulary": "t.model", "separate_vocabularies": True}
BOTH_GIVEN: Mapping[str, Value] = {"source_vocabulary": "s.model", "target_vocabulary": "t.model"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"target_lang": "en"},
            "source_lang and target_lang are both 'en', so both sides are the same file; give "
            "two languages [corpus.target_lang]",
        ),
        (
            {"max_ratio": 0.5},
            "max_ratio (0.5) must be at least 1, or 0 to keep all pairs: it is the length of "
            "the longer side divided by that of the shorter [filters.max_ratio]",
        ),
        *(
            (
                {"vocabulary_of": "parent", name: value},
                f"{name} ({value}) has no effect with --vocabulary-of; leave it out "
                f"[vocabulary.{name}]",
            )
            for name, value in {
                "segmentation": "words",
                "target_segmentation": "words",
                "tokenizer": "moses",
                "vocab_size": 100,
                "target_vocab_size": 100,
                "separate_vocabularies": True,
                "source_vocabulary": "s.model",
                "target_vocabulary": "t.model",
                "min_count": 2,
                "sample_lines": 10,
            }.items()
        ),
        (
            {"min_count": 2},
            "min_count (2) has no effect where no vocabulary of words is learnt; leave it out "
            "[vocabulary.min_count]",
        ),
        (
            {"segmentation": "words", "sample_lines": 10},
            "sample_lines (10) has no effect where no SentencePiece vocabulary is learnt",
        ),
        (
            {**BOTH_GIVEN, "vocab_size": 100},
            "vocab_size (100) has no effect where no vocabulary of this size is learnt",
        ),
        (
            {**BOTH_GIVEN, "segmentation": "unigram"},
            "segmentation (unigram) has no effect where the vocabulary is given",
        ),
        (
            {**BOTH_GIVEN, "target_segmentation": "unigram"},
            "target_segmentation (unigram) has no effect where the target's vocabulary is given",
        ),
        (
            {**OWN_TARGET, "target_segmentation": "unigram"},
            "target_segmentation (unigram) has no effect where the target's vocabulary is given",
        ),
        (
            {**OWN_TARGET, "target_vocab_size": 500},
            "target_vocab_size (500) has no effect where no separate vocabulary of the target "
            "is learnt",
        ),
        (
            {**OWN_SOURCE, "vocab_size": 600, "target_vocab_size": 500},
            "vocab_size (600) has no effect where no vocabulary of this size is learnt",
        ),
        (
            {"source_vocabulary": "s", "target_segmentation": "trees", "vocab_size": 600},
            "vocab_size (600) has no effect where no vocabulary of this size is learnt",
        ),
        (
            {"source_vocabulary": "s", "target_segmentation": "words", "sample_lines": 5},
            "sample_lines (5) has no effect where no SentencePiece vocabulary is learnt",
        ),
        (
            {"target_vocabulary": "t", "target_segmentation": "words", "min_count": 5},
            "min_count (5) has no effect where no vocabulary of words is learnt",
        ),
        (
            {"separate_vocabularies": True, "target_segmentation": "words"},
            "separate_vocabularies (True) has no effect where the vocabularies are separate anyway",
        ),
        (
            {**BOTH_GIVEN, "separate_vocabularies": True},
            "separate_vocabularies (True) has no effect where the vocabularies are separate anyway",
        ),
        (
            {"target_vocabulary": "t.model"},
            "target_vocabulary is given without source_vocabulary; give both (the same file for a "
            "shared vocabulary), or --separate-vocabularies to learn the other "
            "[vocabulary.source_vocabulary]",
        ),
        ({"source_vocabulary": "s.model"}, "source_vocabulary is given without target_vocabulary"),
        (
            {"target_vocab_size": 100},
            "target_vocab_size (100) has no effect where no separate vocabulary of the target "
            "is learnt",
        ),
        (
            {"target_segmentation": "trees", "target_vocab_size": 100},
            "target_vocab_size (100) has no effect where no separate vocabulary of the target "
            "is learnt",
        ),
        (
            {"target_segmentation": "tagged-trees", "tokenizer": "moses"},
            "tokenizer ('moses'): a parse has the words of the source unchanged; leave it out, and "
            "split raw text with `nmtkit trees tokenize` [vocabulary.tokenizer]",
        ),
        (
            {"target_segmentation": "trees", "unescape": True},
            "unescape (True): a parse has the words of the source unchanged; leave it out, and",
        ),
        (
            {"target_segmentation": "trees", "normalize": "nfc"},
            "normalize ('nfc'): a parse has the words of the source unchanged; leave it out, and",
        ),
        (
            {"normalize": "nfkc"},
            "normalize (nfkc) has no effect where SentencePiece vocabularies are learnt, which "
            "have nfkc already",
        ),
        (
            {"normalize": "nfc", "target_segmentation": "unigram"},
            "normalize (nfc) has no effect where SentencePiece vocabularies are learnt",
        ),
        (
            {"target_segmentation": "words", "target_vocab_size": 7},
            "target_vocab_size (7) must be at least 8, or same: that of the source "
            "[vocabulary.target_vocab_size]",
        ),
    ],
)
def test_contradictory_settings_of_preprocessing_are_refused(
    values: Mapping[str, Value], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(PreprocessRecipe, CORPUS, values)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"max_ratio": 1},
        {"segmentation": "words", "min_count": 2},
        {"sample_lines": 10},
        BOTH_GIVEN,
        {**BOTH_GIVEN, "segmentation": "words"},
        {"source_vocabulary": "s.model", "separate_vocabularies": True},
        {"target_segmentation": "words", "min_count": 2, "sample_lines": 10},
        {"target_segmentation": "words", "source_vocabulary": "s.model"},
        {"separate_vocabularies": True, "target_vocab_size": 100},
        {**OWN_SOURCE, "vocab_size": 600},
        {**OWN_SOURCE, "target_vocab_size": 600},
        {**OWN_TARGET, "vocab_size": 600, "segmentation": "unigram"},
        {"target_vocabulary": "t", "target_segmentation": "words", "vocab_size": 600},
        {**BOTH_GIVEN, "segmentation": "words", "target_segmentation": "bpe"},
        {"vocabulary_of": "parent"},
        {"vocabulary_of": "parent", "whole_tokens": "tokens"},
    ],
)
def test_consistent_settings_of_preprocessing_are_accepted(values: Mapping[str, Value]) -> None:
    build(PreprocessRecipe, CORPUS, values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"heads": "5,a"},
            "heads ('5,a') must be comma-separated positive numbers, such as 5,6 [selection.heads]",
        ),
        ({"heads": "0"}, "heads ('0') must be comma-separated positive numbers"),
        ({"heads": "1,,2"}, "heads ('1,,2') must be comma-separated positive numbers"),
        (
            {"format": "json", "layer": 5},
            "layer (5) has no effect in json, which contains everything; leave it out "
            "[selection.layer]",
        ),
        (
            {"drawing": "matrix", "word": "making"},
            "word (making) has no effect on a matrix, which shows all words; leave it out",
        ),
        ({"beam": 8}, "beam (8) has no effect without --translate; leave it out [search.beam]"),
        (
            {"translate": True, "length_penalty_form": "none", "length_penalty": 1.0},
            "length_penalty (1.0) has no effect with --length-penalty-form none; leave it out",
        ),
    ],
)
def test_contradictory_settings_of_attention_are_refused(
    values: Mapping[str, Value], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(AttentionRecipe, values)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"heads": "5,6", "layer": 5, "word": "its"},
        {"format": "json", "translate": True, "beam": 8},
        {"format": "png", "drawing": "matrix"},
    ],
)
def test_consistent_settings_of_attention_are_accepted(values: Mapping[str, Value]) -> None:
    build(AttentionRecipe, values)
