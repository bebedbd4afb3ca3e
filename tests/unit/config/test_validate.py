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


COUNTS = (
    "encoder_layers decoder_layers feed_forward_size heads max_positions update_tokens max_updates "
    "warmup_updates save_every keep log_every"
)
COUNTS_OR_NONE = (
    "window key_size value_size max_epochs validate_every patience seed threads devices"
)
FRACTIONS = "dropout attention_dropout activation_dropout label_smoothing"
OFFSETS = "max_output_length min_length_offset"


@pytest.mark.parametrize(
    ("recipe_type", "bound", "beyond", "names"),
    [
        (TrainRecipe, 1, 0, COUNTS),
        (TrainRecipe, 0, -1, COUNTS_OR_NONE),
        (TrainRecipe, 0, -1e-9, f"{FRACTIONS} adam_beta1 adam_beta2"),
        (TrainRecipe, 0, -1e-9, "max_minutes save_minutes clip_norm"),
        (TrainRecipe, 2, 1, "model_size"),
        (TrainRecipe, 0.01, 0.009, "rank_timeout"),
        (TrainRecipe, 1e-9, 9e-10, "learning_rate_scale"),
        (TrainRecipe, 1e-12, 9e-13, "norm_epsilon"),
        (TrainRecipe, 1e-20, 9e-21, "adam_epsilon"),
        (TrainRecipe, 0.99, 0.991, FRACTIONS),
        (TrainRecipe, 0.9999, 0.99991, "adam_beta1"),
        (TrainRecipe, 0.99999, 0.999991, "adam_beta2"),
        (TrainRecipe, 1000, 1001, "encoder_layers decoder_layers"),
        (TrainRecipe, 1024, 1025, "devices threads"),
        (TrainRecipe, 65_536, 65_537, "model_size heads key_size value_size"),
        (TrainRecipe, 100_000, 100_001, "rank_timeout"),
        (TrainRecipe, 1_000_000, 1_000_001, "max_positions"),
        (TrainRecipe, 1_048_576, 1_048_577, "feed_forward_size"),
        (TranslateRecipe, 1, 0, "beam n_best max_length_offset"),
        (TranslateRecipe, 0, -1, f"batch_size {OFFSETS}"),
        (TranslateRecipe, 10_000, 10_001, "beam n_best"),
        (TranslateRecipe, 1_000_000, 1_000_001, f"max_length_offset {OFFSETS}"),
        (PreprocessRecipe, 8, 7, "vocab_size target_vocab_size"),
        (PreprocessRecipe, 10_000_000, 10_000_001, "vocab_size target_vocab_size"),
    ],
)
def test_the_range_of_a_number_ends_at_its_bound(
    recipe_type: type[Recipe], bound: float, beyond: float, names: str
) -> None:
    within, no_problems = check_values(recipe_type, dict.fromkeys(names.split(), bound))
    assert (within, no_problems) == (dict.fromkeys(names.split(), bound), [])
    _, problems = check_values(recipe_type, dict.fromkeys(names.split(), beyond))
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
