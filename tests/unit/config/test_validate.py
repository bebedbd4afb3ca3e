"""Bad values, one at a time, as a file would bring them."""

import pytest

from nmtkit.config.schema import PreprocessRecipe, TrainRecipe, TranslateRecipe, Value
from nmtkit.config.toml import build, read_values
from nmtkit.errors import ConfigError
from tests.messages import refuses

TRAIN = [
    ("model", "encoder_layers", "0", "1 1000"),
    ("model", "encoder_layers", "-6", "1 1000"),
    ("model", "decoder_layers", "6.0", "1 1000"),
    ("model", "decoder_layers", "true", "1 1000"),
    ("model", "model_size", "1", "2 65536"),
    ("model", "model_size", '"512"', "2 65536"),
    ("model", "window", "9223372036854775808", "0 2**63"),
    ("model", "feed_forward_size", "0", "1 1048576"),
    ("model", "feed_forward_size", "nan", "1 1048576"),
    ("model", "heads", "[8]", "1 65536"),
    ("model", "heads", "0", "1 65536"),
    ("model", "key_size", "-1", "0 65536"),
    ("model", "value_size", "inf", "0 65536"),
    ("model", "encoder_layers", "1001", "1 1000"),
    ("model", "decoder_layers", "1_000_000_000", "1 1000"),
    ("model", "model_size", "1_000_000_000", "2 65536"),
    ("model", "feed_forward_size", "1_000_000_000", "1 1048576"),
    ("model", "heads", "1_000_000_000", "1 65536"),
    ("model", "key_size", "1_000_000_000", "0 65536"),
    ("model", "value_size", "1_000_000_000", "0 65536"),
    ("model", "max_positions", "1_000_000_000", "1 1000000"),
    ("ranks", "devices", "1_000_000_000", "auto 0 1024"),
    ("ranks", "rank_timeout", "1e300", "0.01 100000"),
    ("model", "dropout", "1", "0 0.99"),
    ("model", "dropout", "1.0", "0 0.99"),
    ("model", "dropout", "-0.1", "0 0.99"),
    ("model", "dropout", "nan", "0 0.99"),
    ("model", "dropout", "false", "0 0.99"),
    ("model", "dropout", '"0.1"', "0 0.99"),
    ("model", "attention_dropout", "2", "0 0.99"),
    ("model", "activation_dropout", "-1", "0 0.99"),
    ("model", "norm", '"prenorm"', "post pre"),
    ("model", "norm", '"Post"', "post pre; post"),
    ("model", "norm", '""', "post pre"),
    ("model", "norm", "1", "post pre"),
    ("model", "norm_epsilon", "0", "1e-12"),
    ("model", "norm_epsilon", "inf", "1e-12"),
    ("model", "positions", '"sinusoid"', "sinusoidal learned; sinusoidal"),
    ("model", "max_positions", "0", "1 1000000"),
    ("model", "tie_embeddings", "1", "true false"),
    ("model", "tie_embeddings", '"yes"', "true false"),
    ("training", "update_tokens", "0", "1"),
    ("training", "update_tokens", "2.5e4", "1"),
    ("training", "max_tokens", "-4096", "auto 0"),
    ("training", "max_updates", "0", "1"),
    ("training", "max_epochs", "-1", "0"),
    ("training", "max_minutes", "-0.5", "0"),
    ("training", "max_minutes", "12:30:00", "0"),
    ("training", "warmup_updates", "0", "1"),
    ("training", "learning_rate_scale", "-1", "1e-09"),
    ("training", "learning_rate_scale", "-inf", "1e-09"),
    ("training", "adam_beta1", "1.0", "0 0.9999"),
    ("training", "adam_beta2", "1.0", "0 0.99999"),
    ("training", "adam_epsilon", "0.0", "1e-20"),
    ("training", "label_smoothing", "1", "0 0.99"),
    ("training", "clip_norm", "-1.0", "0"),
    ("checkpoints", "save_every", "0", "1"),
    ("checkpoints", "save_minutes", "-1", "0"),
    ("checkpoints", "keep", "0", "1"),
    ("validation", "validate_every", "-1", "0"),
    ("validation", "validate_metrics", "0", "UTF-8"),
    ("validation", "best_metric", "0", "UTF-8"),
    ("validation", "patience", "1.5", "0"),
    ("logging", "log_every", "0", "1"),
    ("logging", "tensorboard", "0", "true false"),
    ("seed", "seed", "-1", "0"),
    ("runtime", "device", '"gpu"', "auto cpu cuda"),
    ("runtime", "threads", "-2", "0 1024"),
]
TRANSLATE = [
    ("search", "beam", "0", "1 10000"),
    ("search", "beam", "1_000_000_000", "1 10000"),
    ("output", "n_best", "1_000_000_000", "1 10000"),
    ("constraints", "max_output_length", "1_000_000_000", "0 1000000"),
    ("constraints", "min_length_offset", "1_000_000_000", "0 1000000"),
    ("search", "max_length_offset", "0", "1 1000000"),
    ("translation", "batch_size", "-1", "0"),
    ("translation", "max_source_length", "1", "2"),
    ("translation", "on_too_long", '"cut"', "split truncate error"),
    ("translation", "on_too_long", '"errors"', "truncate error; error"),
]
PREPROCESS = [
    ("corpus", "train", "3", '"one" "two"'),
    ("corpus", "train", '["a", 1]', '"one" "two"'),
    ("corpus", "train", '["a\\u0000"]', '"one" "two"'),
    ("corpus", "valid_alignments", "1", "UTF-8"),
    ("corpus", "valid_alignments", '"a\\u0000b"', "UTF-8"),
    ("corpus", "source_lang", "true", "UTF-8"),
    ("vocabulary", "segmentation", '"word"', "bpe unigram words; words"),
    ("corpus", "valid_alignments", f'"{"a" * 4097}"', "UTF-8 4096"),
    ("corpus", "train", f'["{"a" * 4097}"]', '"one" "two"'),
    ("vocabulary", "vocab_size", "1_000_000_000", "8 10000000"),
    ("vocabulary", "target_vocab_size", "1_000_000_000", "8 10000000"),
    ("vocabulary", "vocab_size", "7", "8 10000000"),
]
TABLE = [
    *((TrainRecipe, *row) for row in TRAIN),
    *((TranslateRecipe, *row) for row in TRANSLATE),
    *((PreprocessRecipe, *row) for row in PREPROCESS),
]


@pytest.mark.parametrize(("recipe_type", "section", "key", "literal", "keys"), TABLE)
def test_the_error_of_a_bad_value_names_key_and_valid_values(
    recipe_type: type[PreprocessRecipe | TrainRecipe | TranslateRecipe],
    section: str,
    key: str,
    literal: str,
    keys: str,
) -> None:
    with refuses(ConfigError, f"file {key} {section}.{key} {keys}"):
        read_values(f"[{section}]\n{key} = {literal}\n", recipe_type, "file")


@pytest.mark.parametrize("text", ["no\udcffbytes", "null\0"])
def test_text_with_null_or_undecodable_bytes_is_refused(text: str) -> None:
    with refuses(ConfigError, "valid UTF-8 corpus.valid"):
        build(PreprocessRecipe, {"valid_alignments": text})


def test_a_long_value_is_truncated_in_the_message() -> None:
    with refuses(ConfigError, "norm post pre model.norm") as caught:
        build(TrainRecipe, {"norm": "x" * 10_000})
    assert len(str(caught.value)) < 150


def test_all_missing_settings_are_reported() -> None:
    values: dict[str, Value] = {"train": ("corpus",), "source_lang": ""}
    keys = "source_lang; --source-lang target_lang --target-lang corpus.target_lang valid --valid"
    with refuses(ConfigError, keys):
        build(PreprocessRecipe, values)
