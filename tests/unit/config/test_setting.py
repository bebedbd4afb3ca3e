"""Shared settings have one declaration, and files keep them in the sections where they were."""

from dataclasses import replace

import pytest

from nmtkit.config.schema import Recipe, ScoreRecipe, TrainRecipe, TranslateRecipe, fields_of
from nmtkit.config.toml import loads


@pytest.mark.parametrize(
    ("name", "recipes"),
    [
        ("precision", [TranslateRecipe, ScoreRecipe]),
        ("max_tokens", [TranslateRecipe, ScoreRecipe]),
    ],
)
def test_a_shared_setting_is_declared_once(name: str, recipes: list[type[Recipe]]) -> None:
    first, *others = (fields_of(recipe)[name] for recipe in recipes)
    for other in others:
        assert other == replace(first, section=other.section)


def test_files_have_the_settings_in_sections_of_the_command() -> None:
    text = '[{}]\nprecision = "bfloat16"\n'
    assert loads(text.format("engine"), TrainRecipe, "").engine.precision == "bfloat16"
    batch = text + "max_tokens = 7\n"
    translation = loads(batch.format("translation"), TranslateRecipe, "").translation
    scoring = loads(batch.format("scoring"), ScoreRecipe, "").scoring
    for section in (translation, scoring):
        assert (section.precision, section.max_tokens) == ("bfloat16", 7)
