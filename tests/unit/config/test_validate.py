"""Bad values, one at a time, as a file would bring them."""

import pytest

from nmtkit.config.schema import PreprocessRecipe, Recipe, TrainRecipe, TranslateRecipe, Value
from nmtkit.config.toml import build, read_values
from nmtkit.config.validate import check_values
from nmtkit.errors import ConfigError
from tests.messages import refuses

TRAIN = [
    ("model", "encoder_layers", "0", "1 1000"),
    ("model", "encoder_layers", "1_000_000_000", "1 1000"),
    ("model", "decoder_layers", "6.0", "1 1000"),
    ("model", "decoder_layers", "true", "1 1000"),
    ("model", "model_size", '"512"', "2 65536"),
    ("model", "window", "9223372036854775808", "0 2**63"),
    ("model", "feed_forward_size", "nan", "1 1048576"),
    ("model", "heads", "[8]", "1 65536"),
    ("ranks", "devices", "1_000_000_000", "auto 0 1024"),
    ("model", "dropout", "1", "0 0.99"),
    ("model", "dropout", "nan", "0 0.99"),
    ("model", "dropout", "false", "0 0.99"),
    ("model", "dropout", '"0.1"', "0 0.99"),
    ("model", "norm", '"prenorm"', "post pre"),
    ("model", "norm", '"Post"', "post pre; post"),
    ("model", "norm", '""', "post pre"),
    ("model", "norm", "1", "post pre"),
    ("model", "norm_epsilon", "inf", "1e-12"),
    ("model", "positions", '"sinusoid"', "sinusoidal learned; sinusoidal"),
    ("model", "tie_embeddings", "1", "true false"),
    ("model", "tie_embeddings", '"yes"', "true false"),
    ("training", "max_tokens", "-4096", "auto 0"),
    ("training", "max_minutes", "12:30:00", "0"),
    ("training", "learning_rate_scale", "-inf", "1e-09"),
    ("validation", "validate_metrics", "0", "UTF-8"),
    ("runtime", "device", '"gpu"', "auto cpu cuda"),
]
TRANSLATE = [
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


POSITIVE = (
    "encoder_layers decoder_layers feed_forward_size heads norm_epsilon max_positions "
    "update_tokens max_updates warmup_updates adam_epsilon save_every keep log_every"
)
NOT_NEGATIVE = (
    "window key_size value_size attention_dropout activation_dropout max_epochs max_minutes seed "
    "clip_norm save_minutes validate_every patience threads learning_rate_scale"
)
SIZES = (
    "encoder_layers decoder_layers model_size feed_forward_size heads key_size value_size "
    "max_positions devices rank_timeout"
)
OF_OUTPUT = "beam n_best max_output_length min_length_offset max_length_offset"


@pytest.mark.parametrize(
    ("recipe_type", "value", "names"),
    [
        (TrainRecipe, 0, POSITIVE),
        (TrainRecipe, -1, NOT_NEGATIVE),
        (TrainRecipe, 1, "model_size dropout adam_beta1 adam_beta2 label_smoothing"),
        (TrainRecipe, 10**9, SIZES),
        (TranslateRecipe, 0, "beam max_length_offset"),
        (TranslateRecipe, -1, "batch_size"),
        (TranslateRecipe, 10**9, OF_OUTPUT),
        (PreprocessRecipe, 7, "vocab_size target_vocab_size"),
        (PreprocessRecipe, 10**9, "vocab_size target_vocab_size"),
    ],
)
def test_a_number_out_of_the_range_of_its_setting_is_refused(
    recipe_type: type[Recipe], value: int, names: str
) -> None:
    _, problems = check_values(recipe_type, dict.fromkeys(names.split(), value))
    assert [key for problem in problems for key in problem.keys] == names.split()


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
