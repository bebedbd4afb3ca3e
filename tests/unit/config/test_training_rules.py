from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.fields import Value
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError

LINEAR: Mapping[str, Value] = {
    "schedule": "linear",
    "learning_rate": 0.001,
    "decay_updates": 9000,
    "max_updates": 9000,
}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"heads": 6},
            "heads (6) must divide model_size (512); try 4 or 8, "
            "or give both key_size and value_size [model.heads]",
        ),
        ({"heads": 600}, "heads (600) must divide model_size (512); try 512, or give"),
        ({"heads": 6, "key_size": 64}, "heads (6) must divide model_size (512)"),
        ({"heads": 6, "value_size": 64}, "heads (6) must divide model_size (512)"),
        (
            {"model_size": 511, "heads": 7},
            "model_size (511) must be even for sinusoidal positions; try 510 or 512 "
            "[model.model_size]",
        ),
        (
            {"max_positions": 256},
            "max_positions (256) has no effect with sinusoidal positions; leave it out "
            "[model.max_positions]",
        ),
        (
            {"window": 2046, "positions": "learned"},
            "window (2046) has no effect, as all 1024 learned positions are within it; leave it "
            "out, or give less than 2046 [model.window]",
        ),
        ({"window": 1, "positions": "learned", "max_positions": 1}, "window (1) has no effect"),
        (
            {"window": -8},
            "window (-8) must be a whole number of at least 0, below 2**63 [model.window]",
        ),
        (
            {"compile": "on", "deterministic": True},
            "compile ('on') chooses kernels by their speed, so equal runs differ; leave "
            "out --compile or --deterministic [engine.compile]",
        ),
        (
            {"learning_rate": 0.001},
            "learning_rate (0.001) has no effect with --schedule paper; leave it out",
        ),
        (
            {"schedule": "constant"},
            "schedule ('constant') needs a peak learning rate; give --learning-rate, such as "
            "0.0005 "
            "[training.learning_rate]",
        ),
        (
            {"schedule": "constant", "learning_rate": 0.001, "learning_rate_scale": 2.0},
            "learning_rate_scale (2.0) has no effect with --schedule constant; leave it out",
        ),
        (
            {"learning_rate_scale": 0.0},
            "learning_rate_scale (0.0) makes every learning rate 0, so updates have no effect; "
            "leave it out, or give a larger one [training.learning_rate_scale]",
        ),
        (
            {**LINEAR, "learning_rate": 0.0},
            "schedule ('linear') needs a peak learning rate; give --learning-rate",
        ),
        (
            {"final_learning_rate": 1e-5},
            "final_learning_rate (1e-05) has no effect with --schedule paper; leave it out",
        ),
        (
            {"schedule": "constant", "learning_rate": 0.001, "decay_updates": 9000},
            "decay_updates (9000) has no effect with --schedule constant; leave it out",
        ),
        (
            {**LINEAR, "learning_rate_scale": 2.0},
            "learning_rate_scale (2.0) has no effect with --schedule linear; leave it out",
        ),
        (
            {**LINEAR, "decay_updates": 0},
            "decay_updates (0) must be above warmup_updates (4000) for schedule 'linear'; give "
            "--decay-updates, such as the run's --max-updates, or fewer --warmup-updates "
            "[training.decay_updates]",
        ),
        (
            {**LINEAR, "schedule": "cosine", "decay_updates": 4000},
            "decay_updates (4000) must be above warmup_updates (4000) for schedule 'cosine'",
        ),
        (
            {**LINEAR, "max_updates": 9001},
            "max_updates (9001) is above decay_updates (9000), after which the learning rate is 0 "
            "and updates have no effect; give --max-updates 9000, or in a new run more "
            "--decay-updates or a --final-learning-rate [training.max_updates]",
        ),
        (
            {**LINEAR, "final_learning_rate": 0.001},
            "final_learning_rate (0.001) must be below learning_rate (0.001); give a lower one, or "
            "--schedule constant [training.final_learning_rate]",
        ),
        (
            {"validate_every": 1500},
            "validate_every (1500) must be a multiple of save_every (1000); try 1000 or 2000 "
            "[validation.validate_every]",
        ),
        ({"validate_every": 10}, "must be a multiple of save_every (1000); try 1000 ["),
        (
            {"best_metric": "bleu", "validate_metrics": "none"},
            "best_metric ('bleu') is not among the validated metrics (none); give "
            "--validate-metrics bleu, or --best-metric nll [validation.best_metric]",
        ),
        (
            {"best_metric": "ter", "validate_metrics": "bleu, chrf"},
            "best_metric ('ter') is not among the validated metrics (bleu, chrf); give "
            "--validate-metrics bleu,chrf,ter, or --best-metric nll [validation.best_metric]",
        ),
        (
            {"best_metric": "bleu", "validate_every": 0},
            "best_metric (bleu) has no effect without --validate-every; leave it out",
        ),
        (
            {"validate_metrics": "bleu", "validate_every": 0},
            "validate_metrics (bleu) has no effect without --validate-every; leave it out",
        ),
        (
            {"best_metric": "blue"},
            "no metric 'blue'; did you mean 'bleu'? [validation.best_metric]",
        ),
        ({"best_metric": "BLEU"}, "no metric 'BLEU'; known are: nll, bleu, chrf, "),
        (
            {"validate_metrics": "bleu,chfr"},
            "no metric 'chfr'; did you mean 'chrf'? [validation.validate_metrics]",
        ),
        (
            {"patience": 3, "validate_every": 0},
            "patience (3) counts validations, and validate_every is 0; give --validate-every, "
            "or leave out --patience [validation.patience]",
        ),
        (
            {"beam": 8, "validate_metrics": "none"},
            "beam (8) has no effect in training that does not translate the validation set; "
            "leave it out [search.beam]",
        ),
        (
            {"validate_samples": 5, "validate_every": 0},
            "validate_samples (5) has no effect in training that does not translate the "
            "validation set; leave it out [validation.validate_samples]",
        ),
        (
            {"subword_alpha": 0.2},
            "subword_alpha (0.2) has no effect without --subword-sampling; leave it out "
            "[training.subword_alpha]",
        ),
        (
            {"max_length_offset": 8, "validate_every": 0},
            "max_length_offset (8) has no effect in training",
        ),
    ],
)
def test_contradictory_settings_of_training_are_refused(
    values: Mapping[str, Value], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(TrainRecipe, values)
    assert expected in str(caught.value)


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
