from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import TrainRecipe, Value
from nmtkit.config.toml import build
from nmtkit.config.training_rules import (
    MODIFIERS,
    PARTS,
    annotation_probabilities,
    noise_probabilities,
)
from nmtkit.errors import ConfigError
from tests.messages import refuses

LINEAR: Mapping[str, Value] = {
    "schedule": "linear",
    "learning_rate": 0.001,
    "decay_updates": 9000,
    "max_updates": 9000,
}


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"heads": 6}, "heads 6 model_size 512; 4 8 key_size value_size model.heads"),
        ({"heads": 600}, "heads 600 model_size 512; 512"),
        ({"heads": 6, "key_size": 64}, "heads 6 model_size 512"),
        ({"heads": 6, "value_size": 64}, "heads 6 model_size 512"),
        ({"model_size": 511, "heads": 7}, "model_size 511; 510 512 model.model_size"),
        (
            {"key_size": 3, "heads": 8, "positions": "rotary"},
            "key_size 3 rotary; --key-size 4 model.key_size",
        ),
        ({"model_size": 510, "heads": 34, "positions": "rotary"}, "key_size 15 rotary; --heads"),
        ({"heads": 6, "positions": "rotary"}, "heads 6 model_size 512; 4 8 model.heads"),
        ({"max_positions": 256}, "max_positions 256; model.max_positions"),
        ({"window": 2046, "positions": "learned"}, "window 2046 1024; model.window"),
        ({"window": 1, "positions": "learned", "max_positions": 1}, "window 1"),
        ({"window": -8}, "window -8 0 2**63 model.window"),
        ({"learning_rate": 0.001}, "learning_rate 0.001 --schedule inverse-sqrt"),
        (
            {"schedule": "constant"},
            "schedule constant; --learning-rate 0.0005 training.learning_rate",
        ),
        (
            {"schedule": "constant", "learning_rate": 0.001, "learning_rate_scale": 2.0},
            "learning_rate_scale 2.0 --schedule constant",
        ),
        (
            {"learning_rate_scale": 0.0},
            "learning_rate_scale 0.0 1e-09 training.learning_rate_scale",
        ),
        ({**LINEAR, "learning_rate": 0.0}, "schedule linear; --learning-rate"),
        ({"final_learning_rate": 1e-5}, "final_learning_rate 1e-05 --schedule linear"),
        (
            {"schedule": "constant", "learning_rate": 0.001, "decay_updates": 9000},
            "decay_updates 9000 --schedule constant",
        ),
        ({"schedule": "schedule-free"}, "schedule schedule-free; --learning-rate 0.0025"),
        (
            {"schedule": "schedule-free", "learning_rate": 0.001, "adam_beta1": 0.995},
            "adam_beta1 0.995 0.99 schedule-free; --adam-beta1 0.9",
        ),
        (
            {"schedule": "schedule-free", "learning_rate": 0.001, "ema_decay": 0.9},
            "ema_decay 0.9 --schedule schedule-free",
        ),
        ({**LINEAR, "learning_rate_scale": 2.0}, "learning_rate_scale 2.0 --schedule linear"),
        (
            {**LINEAR, "decay_updates": 0},
            "decay_updates 0 warmup_updates 4000 linear; --decay-updates --warmup-updates",
        ),
        (
            {**LINEAR, "schedule": "cosine", "decay_updates": 4000},
            "decay_updates 4000 warmup_updates cosine; --decay-updates --warmup-updates",
        ),
        (
            {**LINEAR, "max_updates": 9001},
            "max_updates 9001 decay_updates 9000; --max-updates 9000 --final-learning-rate",
        ),
        (
            {**LINEAR, "final_learning_rate": 0.001},
            "final_learning_rate 0.001 learning_rate; --schedule training.final_learning_rate",
        ),
        (
            {"validate_every": 1500},
            "validate_every 1500 save_every 1000; 1000 2000 validation.validate_every",
        ),
        ({"validate_every": 10}, "save_every 1000; 1000 validation.validate_every"),
        (
            {"best_metric": "bleu", "validate_metrics": "none"},
            "best_metric bleu none; --validate-metrics bleu --best-metric nll",
        ),
        (
            {"best_metric": "ter", "validate_metrics": "bleu, chrf"},
            "best_metric ter bleu chrf; --validate-metrics bleu,chrf,ter --best-metric nll",
        ),
        ({"best_metric": "bleu", "validate_every": 0}, "best_metric bleu --validate-every"),
        (
            {"validate_metrics": "bleu", "validate_every": 0},
            "validate_metrics bleu --validate-every",
        ),
        ({"best_metric": "blue"}, "blue; bleu validation.best_metric"),
        ({"best_metric": "BLEU"}, "BLEU; 'bleu'"),
        ({"validate_metrics": "bleu,chfr"}, "chfr; chrf validation.validate_metrics"),
        (
            {"patience": 3, "validate_every": 0},
            "patience 3 --validate-every; validation.patience",
        ),
        ({"beam": 8, "validate_metrics": "none"}, "beam 8; search.beam"),
        (
            {"validate_samples": 5, "validate_every": 0},
            "validate_samples 5; validation.validate_samples",
        ),
        ({"subword_alpha": 0.2}, "subword_alpha 0.2 --subword-sampling; training.subword_alpha"),
        ({"max_length_offset": 8, "validate_every": 0}, "max_length_offset 8"),
        ({"sampling_temperature": 0.2}, "sampling_temperature 0.2; 1 5 training"),
    ],
)
def test_contradictory_settings_of_training_are_refused(
    values: Mapping[str, Value], keys: str
) -> None:
    with refuses(ConfigError, keys):
        build(TrainRecipe, values)


@pytest.mark.parametrize(
    "values",
    [
        {"heads": 6, "key_size": 64, "value_size": 64},
        {"subword_sampling": "source", "subword_alpha": 0.2},
        {"model_size": 511, "heads": 7, "positions": "learned"},
        {"max_positions": 256, "positions": "learned"},
        LINEAR,
        {**LINEAR, "schedule": "cosine", "max_updates": 5},
        {**LINEAR, "final_learning_rate": 1e-5, "max_updates": 20_000},
        {"validate_every": 0, "patience": 0},
        {"validate_every": 3000, "patience": 4},
        {"best_metric": "bleu"},
        {"beam": 8},
        {"validate_metrics": "none"},
        {"validate_metrics": "none", "validate_every": 0},
        {"validate_metrics": "bleu, ter", "best_metric": "ter"},
    ],
)
def test_consistent_settings_of_training_are_accepted(values: Mapping[str, Value]) -> None:
    build(TrainRecipe, values)


@given(heads=st.integers(1, 700), half_size=st.integers(1, 600))
def test_a_suggested_number_of_heads_is_accepted(heads: int, half_size: int) -> None:
    size = 2 * half_size
    try:
        build(TrainRecipe, {"heads": heads, "model_size": size})
    except ConfigError as error:
        tried = str(error).partition("; try ")[2].partition(",")[0].split(" or ")
        assert size % heads != 0
        for suggestion in tried:
            build(TrainRecipe, {"heads": int(suggestion), "model_size": size})
    else:
        assert size % heads == 0


LAYERS = {"encoder_layers": 6, "decoder_layers": 4}


@pytest.mark.parametrize("part", [*PARTS, "encoder.1", "encoder.1-6", "encoder.6", "decoder.4"])
def test_parts_of_the_model_are_accepted(part: str) -> None:
    assert build(TrainRecipe, {**LAYERS, "freeze": (part,)}).training.freeze == (part,)


@pytest.mark.parametrize(
    ("part", "keys"),
    [
        ("encodr", "'encodr'; 'encoder' training.freeze"),
        ("Encoder", "'Encoder'; 'encoder' training.freeze"),
        ("cross_attention", "'cross_attention'; 'cross-attention'"),
        ("xyz", "'xyz'; embeddings source-embeddings target-embeddings"),
        ("", "''; embeddings"),
        ("encoder.", "'encoder.'; encoder"),
        ("encoder.-1", "'encoder.-1'; 'encoder.1'"),
        ("encoder.1-", "'encoder.1-'; 'encoder.1-3'"),
        ("projection.1", "'projection.1'"),
        ("encoder.1.self_attention", "'encoder.1.self_attention'"),
        ("encoder.7", "freeze 'encoder.7' 1 6; encoder.1 training.freeze"),
        ("decoder.5", "freeze 'decoder.5' 1 4; decoder.1"),
        ("decoder.3-5", "freeze 'decoder.3-5' 1 4"),
        ("encoder.0", "freeze 'encoder.0' 1 6"),
        ("encoder.3-2", "freeze 'encoder.3-2' 1 6"),
    ],
)
def test_other_parts_are_refused(part: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        build(TrainRecipe, {**LAYERS, "freeze": ("decoder", part)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", {}),
        ("upper=0.07", {"upper": 0.07}),
        (" upper = 1 , typo=1e-3 ", {"typo": 0.001, "upper": 1.0}),
    ],
)
def test_probabilities_are_read(text: str, expected: dict[str, float]) -> None:
    assert noise_probabilities(build(TrainRecipe, {"noise": text}).training.noise) == expected


def test_annotations_are_named_as_noise_is() -> None:
    recipe = build(TrainRecipe, {"annotate": "terms=0.2,tags=0.1"})
    assert annotation_probabilities(recipe.training.annotate) == {"tags": 0.1, "terms": 0.2}
    with refuses(ConfigError, "annotate tag; tags training.annotate"):
        build(TrainRecipe, {"annotate": "tag=0.1"})


def test_modifiers_are_applied_in_the_order_of_the_table() -> None:
    text = ",".join(f"{name}=0.1" for name in reversed(MODIFIERS))
    assert [*noise_probabilities(text)] == [*MODIFIERS]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", "noise ''"),
        ("upper", "noise upper"),
        ("upper=", "noise upper="),
        ("upper=0.1,,typo=0.1", "noise '' upper=0.07"),
        ("none,upper=0.1", "noise none"),
        ("uper=0.1", "noise uper; upper training.noise"),
        ("=0.1", "noise ''; join-lines drop-final-punctuation typo"),
        ("Upper=0.1", "noise Upper; upper training.noise"),
        *(
            (
                f"typo={number}",
                f"noise typo={number} 0 1 upper=0.07 training.noise",
            )
            for number in ("0", "-0.1", "1.01", "nan", "inf", "5%", "often", "0.1=0.2")
        ),
        ("typo=0.1,upper=0.1,typo=0.2", "noise typo twice"),
    ],
)
def test_other_text_is_refused(text: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        build(TrainRecipe, {"noise": text})


def test_all_problems_are_reported_together() -> None:
    with refuses(ConfigError, "noise lower typo=2 x training.noise"):
        build(TrainRecipe, {"noise": "lower=0.1,typo=2,x=0.1"})
