from collections.abc import Mapping

import pytest

from nmtkit.config.schema import AttentionRecipe, PreprocessRecipe, ScoreRecipe, Value
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError
from tests.messages import refuses

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
    ("values", "keys"),
    [
        ({"target_lang": "en"}, "source_lang target_lang en; corpus.target_lang"),
        ({"keep_above": 0.7}, "keep_above 0.7 --scores; filters.keep_above"),
        ({"scores": ("a", "b")}, "scores 2 1; --train filters.scores"),
        ({"alignments": ("a", "b")}, "alignments 2 1 corpus.alignments"),
        ({"alignment_text": ("a",)}, "alignment_text --alignments; corpus.alignment_text"),
        ({"max_ratio": 0.5}, "max_ratio 0.5 0.0 1 filters.max_ratio"),
        *(
            (
                {"vocabulary_of": "parent", name: value},
                f"{name} {value} --vocabulary-of; vocabulary.{name}",
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
        ({"min_count": 2}, "min_count 2; vocabulary.min_count"),
        ({"segmentation": "words", "sample_lines": 10}, "sample_lines 10"),
        ({**BOTH_GIVEN, "vocab_size": 100}, "vocab_size 100"),
        ({**BOTH_GIVEN, "segmentation": "unigram"}, "segmentation unigram"),
        ({**BOTH_GIVEN, "target_segmentation": "unigram"}, "target_segmentation unigram"),
        ({**OWN_TARGET, "target_segmentation": "unigram"}, "target_segmentation unigram"),
        ({**OWN_TARGET, "target_vocab_size": 500}, "target_vocab_size 500"),
        ({**OWN_SOURCE, "vocab_size": 600, "target_vocab_size": 500}, "vocab_size 600"),
        (
            {"source_vocabulary": "s", "target_segmentation": "trees", "vocab_size": 600},
            "vocab_size 600",
        ),
        (
            {"source_vocabulary": "s", "target_segmentation": "words", "sample_lines": 5},
            "sample_lines 5",
        ),
        ({"target_vocabulary": "t", "target_segmentation": "words", "min_count": 5}, "min_count 5"),
        (
            {"separate_vocabularies": True, "target_segmentation": "words"},
            "separate_vocabularies True",
        ),
        ({**BOTH_GIVEN, "separate_vocabularies": True}, "separate_vocabularies True"),
        (
            {"target_vocabulary": "t.model"},
            "target_vocabulary; --separate-vocabularies vocabulary.source_vocabulary",
        ),
        ({"source_vocabulary": "s.model"}, "source_vocabulary target_vocabulary; both"),
        ({"target_vocab_size": 100}, "target_vocab_size 100"),
        ({"target_segmentation": "trees", "target_vocab_size": 100}, "target_vocab_size 100"),
        (
            {"target_segmentation": "tagged-trees", "tokenizer": "moses"},
            "tokenizer moses; nmtkit trees tokenize vocabulary.tokenizer",
        ),
        (
            {"target_segmentation": "trees", "unescape": True},
            "unescape True; nmtkit trees tokenize vocabulary.unescape",
        ),
        (
            {"target_segmentation": "trees", "normalize": "nfc"},
            "normalize nfc; nmtkit trees tokenize vocabulary.normalize",
        ),
        ({"segmentation": "words", "split_digits": True}, "split_digits True"),
        ({"linearization": "in-order"}, "linearization in-order trees tagged-trees"),
        *(
            ({"marks": 5, **other}, "marks 5; --segmentation bpe vocabulary.marks")
            for other in (
                {"segmentation": "words"},
                {"target_segmentation": "trees"},
                {"tokenizer": "moses"},
            )
        ),
        (
            {"target_segmentation": "words", "target_vocab_size": 7},
            "target_vocab_size 7 8 vocabulary.target_vocab_size",
        ),
    ],
)
def test_contradictory_settings_of_preprocessing_are_refused(
    values: Mapping[str, Value], keys: str
) -> None:
    with refuses(ConfigError, keys):
        build(PreprocessRecipe, CORPUS, values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"max_ratio": 1},
        {"scores": ("a",), "keep_above": -1.5},
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
    ("values", "keys"),
    [
        ({"heads": "5,a"}, "heads 5,a 5,6 selection.heads"),
        ({"heads": "0"}, "heads 0"),
        ({"heads": "1,,2"}, "heads 1,,2"),
        ({"format": "json", "layer": 5}, "layer 5; selection.layer"),
        ({"drawing": "matrix", "word": "making"}, "word making"),
        ({"beam": 8}, "beam 8 --translate; search.beam"),
        (
            {"translate": True, "length_penalty_form": "none", "length_penalty": 1.0},
            "length_penalty 1.0 --length-penalty-form none",
        ),
    ],
)
def test_contradictory_settings_of_attention_are_refused(
    values: Mapping[str, Value], keys: str
) -> None:
    with refuses(ConfigError, keys):
        build(AttentionRecipe, values)


@pytest.mark.parametrize(
    "values",
    [
        {"heads": "5,6", "layer": 5, "word": "its"},
        {"format": "json", "translate": True, "beam": 8},
        {"format": "svg", "drawing": "matrix"},
    ],
)
def test_consistent_settings_of_attention_are_accepted(values: Mapping[str, Value]) -> None:
    build(AttentionRecipe, values)


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"metric": "bleu,chfr"}, "chfr; chrf metrics.metric"),
        ({"metric": ""}, "''; bleu brackets metrics.metric"),
        ({"metric": "BLEU"}, "BLEU; 'bleu'"),
        ({"metric": "chrf", "tokenize": "intl"}, "tokenize intl chrf; metrics.tokenize"),
        ({"metric": "ter", "lowercase": True}, "lowercase True ter; metrics.lowercase"),
        ({"metric": "paper-bleu"}, "paper-bleu; --language-pair en-de metrics.language_pair"),
        ({"test_set": "wmt17"}, "test_set; --language-pair"),
        ({"language_pair": "de"}, "language_pair de; en-zh metrics.language_pair"),
        ({"language_pair": "en-zh-CN"}, "language_pair en-zh-CN; codes country script en-zh"),
        ({"metric": "brackets,bleu"}, "metric brackets,bleu; metrics.metric"),
        *(
            (
                {"metric": "brackets", **values},
                f"{next(iter(values))} {text} brackets",
            )
            for values, text in (
                ({"lowercase": True}, "True"),
                ({"language_pair": "en-de", "test_set": "wmt17"}, "en-de"),
                ({"language_pair": "en-de"}, "en-de"),
                ({"by_frequency": "train.de"}, "train.de"),
            )
        ),
        ({"prm": "new.prm"}, "prm new.prm; metrics.prm"),
        ({"paired_bs": True, "paired_ar": True}, "paired_bs --paired-ar; significance.paired_bs"),
        ({"paired_bs": True, "confidence": True}, "confidence True --paired-bs"),
        ({"trials": 5}, "trials 5 --paired-ar"),
        ({"resamples": 5, "paired_ar": True}, "resamples 5 --confidence --paired-bs"),
        *(
            (
                {"sentence_level": True, **values},
                f"{next(iter(values))} {text} --sentence-level",
            )
            for values, text in (
                ({"confidence": True}, "True"),
                ({"paired_bs": True}, "True"),
                ({"paired_ar": True}, "True"),
                ({"by_length": True}, "True"),
                ({"by_frequency": "train.de"}, "train.de"),
            )
        ),
    ],
)
def test_contradictory_settings_of_scoring_are_refused(
    values: Mapping[str, Value], keys: str
) -> None:
    with refuses(ConfigError, keys):
        build(ScoreRecipe, values)


@pytest.mark.parametrize(
    "values",
    [
        {"metric": "bleu, ter", "lowercase": True, "tokenize": "char"},
        {"metric": "moses-bleu,paper-bleu", "language_pair": "en-de"},
        {"test_set": "wmt17", "language_pair": "en-de", "sentence_level": True},
        {"metric": "brackets", "prm": "new.prm", "sentence_level": True},
        {"metric": "brackets", "paired_ar": True, "by_length": True},
        {"paired_bs": True, "resamples": 5},
        {"paired_ar": True, "trials": 5, "confidence": True, "resamples": 5, "by_length": True},
    ],
)
def test_consistent_settings_of_scoring_are_accepted(values: Mapping[str, Value]) -> None:
    build(ScoreRecipe, values)
