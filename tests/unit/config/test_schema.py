import dataclasses

import pytest

from nmtkit.config.schema import (
    AttentionRecipe,
    PreprocessRecipe,
    Recipe,
    RerankRecipe,
    ScoreRecipe,
    TrainRecipe,
    TranslateRecipe,
    fields_of,
    recipe_of,
    sections_of,
    values_of,
)

RECIPES = [
    PreprocessRecipe,
    TrainRecipe,
    TranslateRecipe,
    ScoreRecipe,
    RerankRecipe,
    AttentionRecipe,
]


@pytest.mark.parametrize("recipe_type", RECIPES)
def test_no_two_sections_of_a_recipe_share_a_field_name(
    recipe_type: type[Recipe],
) -> None:
    names = [
        field.name
        for section in sections_of(recipe_type).values()
        for field in dataclasses.fields(section)
    ]
    assert len(names) == len(set(names))
    assert list(fields_of(recipe_type)) == names


@pytest.mark.parametrize("recipe_type", RECIPES)
def test_every_default_has_its_fields_type_and_is_valid(
    recipe_type: type[Recipe],
) -> None:
    for field in fields_of(recipe_type).values():
        assert type(field.default) is field.kind, field.name
        if field.choices:
            assert field.default in field.choices
        if isinstance(field.default, int | float) and field.kind is not bool and field.default:
            assert field.minimum <= field.default <= (field.maximum or field.default)


def test_values_of_the_default_recipe_are_the_defaults() -> None:
    defaults = {name: field.default for name, field in fields_of(TrainRecipe).items()}
    assert values_of(TrainRecipe()) == defaults


def test_a_recipe_from_values_has_defaults_for_the_others() -> None:
    recipe = recipe_of(TrainRecipe, {"heads": 4, "keep": 2})
    default = TrainRecipe()
    assert recipe == dataclasses.replace(
        default,
        model=dataclasses.replace(default.model, heads=4),
        checkpoints=dataclasses.replace(default.checkpoints, keep=2),
    )
