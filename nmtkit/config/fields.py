"""The settings of a recipe as a flat table, for flags, files and checks.

Field names are unique within a recipe, so a mapping from name to value describes it fully.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

from nmtkit.config.schema import Recipe
from nmtkit.config.setting import Setting

Value = bool | int | float | str | tuple[str, ...]
Values = Mapping[str, Value]
AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)


@dataclass(frozen=True)
class Field:
    """A setting.

    Attributes:
        section: name of its section.
        name: its name, unique within the recipe.
        kind: bool, int, float, str, or tuple (of texts).
        default: the schema's default.
        setting: help, unit, choices and range.
    """

    section: str
    name: str
    kind: type
    default: Value
    setting: Setting


def sections_of(recipe_type: type[AnyRecipe]) -> dict[str, type[Any]]:
    """Return the types of the recipe's sections, by name, in order."""
    return get_type_hints(recipe_type)


def fields_of(recipe_type: type[AnyRecipe]) -> dict[str, Field]:
    """Return every setting of a recipe, by name, in the order of the schema."""
    table = {}
    for section, section_type in sections_of(recipe_type).items():
        hints, defaults = get_type_hints(section_type), vars(section_type())
        for field in dataclasses.fields(section_type):
            kind = get_origin(hints[field.name]) or hints[field.name]
            default, setting = defaults[field.name], field.metadata["setting"]
            table[field.name] = Field(section, field.name, kind, default, setting)
    return table


def values_of(recipe: Recipe) -> dict[str, Value]:
    """Return the value of every setting, by name."""
    sections = (getattr(recipe, section) for section in sections_of(type(recipe)))
    return {name: value for section in sections for name, value in vars(section).items()}


def recipe_of(recipe_type: type[AnyRecipe], values: Values) -> AnyRecipe:
    """Return the recipe with these values; the schema's defaults fill the rest.

    Values are not checked: see `nmtkit.config.validate`.
    """
    sections: dict[str, dict[str, Any]] = {name: {} for name in sections_of(recipe_type)}
    for name, field in fields_of(recipe_type).items():
        if name in values:
            sections[field.section][name] = values[name]
    types = sections_of(recipe_type)
    return recipe_type(**{name: types[name](**chosen) for name, chosen in sections.items()})
