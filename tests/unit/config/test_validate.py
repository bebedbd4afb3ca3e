"""Bad values, one at a time, as a file would bring them."""

import pytest

from nmtkit.config.fields import Value
from nmtkit.config.schema import PreprocessRecipe, TrainRecipe, TranslateRecipe
from nmtkit.config.toml import build, read_values
from nmtkit.errors import ConfigError

TRAIN = [
    ("model", "encoder_layers", "0", "a whole number from 1 to 1000"),
    ("model", "encoder_layers", "-6", "a whole number from 1 to 1000"),
    ("model", "decoder_layers", "6.0", "a whole number from 1 to 1000"),
    ("model", "decoder_layers", "true", "a whole number from 1 to 1000"),
    ("model", "model_size", "1", "a whole number from 2 to 65536"),
    ("model", "model_size", '"512"', "a whole number from 2 to 65536"),
    ("model", "window", "9223372036854775808", "a whole number of at least 0, below 2**63"),
    ("model", "feed_forward_size", "0", "a whole number from 1 to 1048576"),
    ("model", "feed_forward_size", "nan", "a whole number from 1 to 1048576"),
    ("model", "heads", "[8]", "a whole number from 1 to 65536"),
    ("model", "heads", "0", "a whole number from 1 to 65536"),
    ("model", "key_size", "-1", "a whole number from 0 to 65536"),
    ("model", "value_size", "inf", "a whole number from 0 to 65536"),
    ("model", "encoder_layers", "1001", "a whole number from 1 to 1000"),
    ("model", "decoder_layers", "1_000_000_000", "a whole number from 1 to 1000"),
    ("model", "model_size", "1_000_000_000", "a whole number from 2 to 65536"),
    ("model", "feed_forward_size", "1_000_000_000", "a whole number from 1 to 1048576"),
    ("model", "heads", "1_000_000_000", "a whole number from 1 to 65536"),
    ("model", "key_size", "1_000_000_000", "a whole number from 0 to 65536"),
    ("model", "value_size", "1_000_000_000", "a whole number from 0 to 65536"),
    ("model", "max_positions", "1_000_000_000", "a whole number from 1 to 1000000"),
    ("ranks", "devices", "1_000_000_000", "'auto' or a whole number from 0 to 1024"),
    ("ranks", "rank_timeout", "1e300", "a number from 0.01 to 100000"),
    ("model", "dropout", "1", "a number from 0 to 0.99"),
    ("model", "dropout", "1.0", "a number from 0 to 0.99"),
    ("model", "dropout", "-0.1", "a number from 0 to 0.99"),
    ("model", "dropout", "nan", "a number from 0 to 0.99"),
    ("model", "dropout", "false", "a number from 0 to 0.99"),
    ("model", "dropout", '"0.1"', "a number from 0 to 0.99"),
    ("model", "attention_dropout", "2", "a number from 0 to 0.99"),
    ("model", "activation_dropout", "-1", "a number from 0 to 0.99"),
    ("model", "norm", '"prenorm"', "one of: post, pre"),
    ("model", "norm", '"Post"', "one of: post, pre; did you mean 'post'?"),
    ("model", "norm", '""', "one of: post, pre"),
    ("model", "norm", "1", "one of: post, pre"),
    ("model", "norm_epsilon", "0", "a number of at least 1e-12, finite"),
    ("model", "norm_epsilon", "inf", "a number of at least 1e-12, finite"),
    ("model", "positions", '"sinusoid"', "one of: sinusoidal, learned; did you mean 'sinusoidal'?"),
    ("model", "max_positions", "0", "a whole number from 1 to 1000000"),
    ("model", "tie_embeddings", "1", "true or false"),
    ("model", "tie_embeddings", '"yes"', "true or false"),
    ("training", "update_tokens", "0", "a whole number of at least 1"),
    ("training", "update_tokens", "2.5e4", "a whole number of at least 1"),
    ("training", "max_tokens", "-4096", "'auto' or a whole number of at least 0"),
    ("training", "max_updates", "0", "a whole number of at least 1"),
    ("training", "max_epochs", "-1", "a whole number of at least 0"),
    ("training", "max_minutes", "-0.5", "a number of at least 0, finite"),
    ("training", "max_minutes", "12:30:00", "a number of at least 0, finite"),
    ("training", "warmup_updates", "0", "a whole number of at least 1"),
    ("training", "learning_rate_scale", "-1", "a number of at least 0, finite"),
    ("training", "learning_rate_scale", "-inf", "a number of at least 0, finite"),
    ("training", "adam_beta1", "1.0", "a number from 0 to 0.9999"),
    ("training", "adam_beta2", "1.0", "a number from 0 to 0.99999"),
    ("training", "adam_epsilon", "0.0", "a number of at least 1e-20, finite"),
    ("training", "label_smoothing", "1", "a number from 0 to 0.99"),
    ("training", "clip_norm", "-1.0", "a number of at least 0, finite"),
    ("checkpoints", "save_every", "0", "a whole number of at least 1"),
    ("checkpoints", "save_minutes", "-1", "a number of at least 0, finite"),
    ("checkpoints", "keep", "0", "a whole number of at least 1"),
    ("validation", "validate_every", "-1", "a whole number of at least 0"),
    ("validation", "validate_metrics", "0", "UTF-8 text"),
    ("validation", "best_metric", "0", "UTF-8 text"),
    ("validation", "patience", "1.5", "a whole number of at least 0"),
    ("logging", "log_every", "0", "a whole number of at least 1"),
    ("logging", "tensorboard", "0", "true or false"),
    ("seed", "seed", "-1", "a whole number of at least 0"),
    ("runtime", "device", '"gpu"', "one of: auto, cpu, cuda"),
    ("runtime", "threads", "-2", "a whole number from 0 to 1024"),
]
TRANSLATE = [
    ("search", "beam", "0", "a whole number from 1 to 10000"),
    ("search", "beam", "1_000_000_000", "a whole number from 1 to 10000"),
    ("output", "n_best", "1_000_000_000", "a whole number from 1 to 10000"),
    ("constraints", "max_output_length", "1_000_000_000", "a whole number from 0 to 1000000"),
    ("constraints", "min_length_offset", "1_000_000_000", "a whole number from 0 to 1000000"),
    ("search", "max_length_offset", "0", "a whole number from 1 to 1000000"),
    ("translation", "batch_size", "-1", "a whole number of at least 0"),
    ("translation", "max_source_length", "1", "a whole number of at least 2"),
    ("translation", "on_too_long", '"cut"', "one of: split, truncate, error"),
    ("translation", "on_too_long", '"errors"', "truncate, error; did you mean 'error'?"),
]
PREPROCESS = [
    ("corpus", "train", '"corpus"', 'a list of texts, such as ["one", "two"]'),
    ("corpus", "train", '["a", 1]', "a list of texts"),
    ("corpus", "train", '["a\\u0000"]', "a list of texts"),
    ("corpus", "valid", "1", "UTF-8 text"),
    ("corpus", "valid", '"a\\u0000b"', "UTF-8 text"),
    ("corpus", "source_lang", "true", "UTF-8 text"),
    ("vocabulary", "segmentation", '"word"', "bpe, unigram, words; did you mean 'words'?"),
    ("corpus", "valid", f'"{"a" * 4097}"', "UTF-8 text of at most 4096 characters"),
    ("corpus", "train", f'["{"a" * 4097}"]', "a list of texts, such as"),
    ("vocabulary", "vocab_size", "1_000_000_000", "a whole number from 8 to 10000000"),
    ("vocabulary", "target_vocab_size", "1_000_000_000", "a whole number from 0 to 10000000"),
    ("vocabulary", "vocab_size", "7", "a whole number from 8 to 10000000"),
]
TABLE = [
    *((TrainRecipe, *row) for row in TRAIN),
    *((TranslateRecipe, *row) for row in TRANSLATE),
    *((PreprocessRecipe, *row) for row in PREPROCESS),
]


@pytest.mark.parametrize(("recipe_type", "section", "key", "literal", "expected"), TABLE)
def test_the_error_of_a_bad_value_names_key_and_valid_values(
    recipe_type: type[PreprocessRecipe | TrainRecipe | TranslateRecipe],
    section: str,
    key: str,
    literal: str,
    expected: str,
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_values(f"[{section}]\n{key} = {literal}\n", recipe_type, "file")
    message = str(caught.value)
    assert message.startswith(f"file: {key} (")
    assert expected in message.partition(") must be ")[2]
    assert message.endswith(f" [{section}.{key}]")


@pytest.mark.parametrize("text", ["no\udcffbytes", "null\0"])
def test_text_with_null_or_undecodable_bytes_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"valid \('.*'\) must be UTF-8 text of .* \[corpus"):
        build(PreprocessRecipe, {"valid": text})


def test_a_long_value_is_truncated_in_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        build(TrainRecipe, {"norm": "x" * 10_000})
    assert len(str(caught.value)) < 150


def test_all_missing_settings_are_reported() -> None:
    values: dict[str, Value] = {"train": ("corpus",), "source_lang": ""}
    with pytest.raises(ConfigError) as caught:
        build(PreprocessRecipe, values)
    assert str(caught.value) == (
        "source_lang is missing; give --source-lang [corpus.source_lang]; "
        "target_lang is missing; give --target-lang [corpus.target_lang]; "
        "valid is missing; give --valid [corpus.valid]"
    )
