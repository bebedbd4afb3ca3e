"""Recipes of earlier versions are read as what they mean today."""

from pathlib import Path

import pytest

from nmtkit.config.schema import AttentionRecipe, Recipe, ScoreRecipe, TrainRecipe, TranslateRecipe
from nmtkit.config.toml import dumps, loads
from nmtkit.errors import ConfigError
from tests.golden.freeze import FROZEN
from tests.messages import refuses


def read(text: str) -> TrainRecipe:
    return loads(text, TrainRecipe, "config.toml")


def test_a_frozen_recipe_is_read_under_current_names() -> None:
    text = (FROZEN / "run" / "config.toml").read_text("utf-8")
    assert 'best_metric = "loss"' in text
    assert "validate_bleu = true" in text
    assert "extra_length = 2" in text
    recipe = read(text)
    assert recipe.validation.best_metric == "nll"
    assert recipe.validation.validate_metrics == "auto"
    assert recipe.search.max_length_offset == 2
    assert read(dumps(recipe)) == recipe


def test_validate_bleu_false_becomes_no_translation() -> None:
    assert read("[validation]\nvalidate_bleu = false\n").validation.validate_metrics == "none"


def test_a_setting_that_version_0_1_refused_is_refused() -> None:
    with refuses(ConfigError, "validate_bleu; validate_samples"):
        read('[validation]\nvalidate_bleu = "maybe"\n')


def test_a_recipe_that_never_validates_is_read() -> None:
    recipe = read("[validation]\nvalidate_every = 0\nvalidate_bleu = true\n")
    assert recipe.validation.validate_metrics == "auto"


@pytest.mark.parametrize(
    ("recipe_type", "old", "new"),
    [
        (TrainRecipe, "[training]\naverage_decay = 0.9", "[training]\nema_decay = 0.9"),
        (TrainRecipe, "[engine]\nrecompute = true", "[engine]\nactivation_checkpointing = true"),
        (TrainRecipe, "[search]\nextra_length = 7", "[search]\nmax_length_offset = 7"),
        (TranslateRecipe, "[search]\nextra_length = 7", "[search]\nmax_length_offset = 7"),
        (ScoreRecipe, "[breakdown]\nsentence = true", "[breakdown]\nsentence_level = true"),
        (TranslateRecipe, "[constraints]\nmin_length = 3", "[constraints]\nmin_length_offset = 3"),
        (
            AttentionRecipe,
            "[view]\ntranslate = true\n[search]\nextra_length = 7",
            "[view]\ntranslate = true\n[search]\nmax_length_offset = 7",
        ),
    ],
)
def test_a_setting_is_read_under_its_old_name(
    recipe_type: type[Recipe], old: str, new: str
) -> None:
    recipe = loads(old, recipe_type, "config.toml")
    assert recipe == loads(new, recipe_type, "config.toml") != recipe_type()


def test_a_problem_of_an_old_name_is_reported_under_the_new_one() -> None:
    with refuses(ConfigError, "max_length_offset 0 1 1000000"):
        read("[search]\nextra_length = 0\n")


def test_settings_that_did_not_change_are_read_unchanged() -> None:
    assert read('[validation]\nbest_metric = "bleu"\n').validation.best_metric == "bleu"


def test_each_frozen_recipe_of_a_run_is_read() -> None:
    paths = sorted(Path("tests/golden").glob("*/run/**/config.toml"))
    assert paths
    for path in paths:
        text = path.read_text("utf-8")
        expected = "nll" if 'best_metric = "loss"' in text else "bleu"
        assert read(text).validation.best_metric == expected
