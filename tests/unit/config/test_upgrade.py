"""Recipes of earlier versions are read as what they mean today."""

from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import dumps, loads
from nmtkit.errors import ConfigError
from tests.golden.freeze import FROZEN


def read(text: str) -> TrainRecipe:
    return loads(text, TrainRecipe, "config.toml")


def test_a_frozen_recipe_is_read_under_today_s_names() -> None:
    text = (FROZEN / "run" / "config.toml").read_text("utf-8")
    assert 'best_metric = "loss"' in text
    assert "validate_bleu = true" in text
    recipe = read(text)
    assert recipe.validation.best_metric == "nll"
    assert recipe.validation.validate_metrics == "auto"
    assert read(dumps(recipe)) == recipe


def test_validation_without_bleu_is_validation_without_translation() -> None:
    assert read("[validation]\nvalidate_bleu = false\n").validation.validate_metrics == "none"


def test_a_setting_that_version_0_1_refused_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown key 'validate_bleu'"):
        read('[validation]\nvalidate_bleu = "maybe"\n')


def test_a_recipe_that_never_validates_is_read() -> None:
    recipe = read("[validation]\nvalidate_every = 0\nvalidate_bleu = true\n")
    assert recipe.validation.validate_metrics == "auto"


def test_settings_that_did_not_change_are_read_unchanged() -> None:
    assert read('[validation]\nbest_metric = "bleu"\n').validation.best_metric == "bleu"


def test_each_frozen_recipe_of_a_run_is_read() -> None:
    paths = sorted(Path("tests/golden").glob("*/run/**/config.toml"))
    assert paths
    for path in paths:
        text = path.read_text("utf-8")
        expected = "nll" if 'best_metric = "loss"' in text else "bleu"
        assert read(text).validation.best_metric == expected
