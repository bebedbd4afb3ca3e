"""Recipes as TOML text, and recipes from layers of values.

A file needs only the settings that it changes; `dumps` writes all of them.
"""

import json
import tomllib
from collections.abc import Iterable
from typing import Any

from nmtkit.config.fields import AnyRecipe, Field, Value, Values, fields_of, values_of
from nmtkit.config.problems import Problem, raise_problems, suggestion
from nmtkit.config.schema import Recipe
from nmtkit.config.upgrade import upgraded
from nmtkit.config.validate import check_recipe, check_values
from nmtkit.errors import ConfigError


def dumps(recipe: Recipe) -> str:
    """Return the recipe as TOML: a table per section, with every setting."""
    values = values_of(recipe)
    lines: list[str] = []
    section = ""
    for name, field in fields_of(type(recipe)).items():
        if field.section != section:
            section = field.section
            lines += ["", f"[{section}]"]
        lines.append(f"{name} = {literal(field, values[name])}")
    return "\n".join(lines[1:]) + "\n"


def literal(field: Field, value: Value) -> str:
    """Return the value of a setting as TOML writes it."""
    return _literal(value or field.setting.zero or value)


def loads(text: str, recipe_type: type[AnyRecipe], name: str) -> AnyRecipe:
    """Return the recipe in a TOML text; defaults fill the rest.

    Args:
        text: the TOML.
        recipe_type: the type of the recipe.
        name: the name of the text in messages, such as its path.

    Raises:
        ConfigError: names every problem of the text.
    """
    values, problems = _parse(text, recipe_type, name)
    recipe, problems = check_recipe(recipe_type, values, problems)
    raise_problems(problems, name)
    return recipe


def read_values(text: str, recipe_type: type[AnyRecipe], name: str) -> dict[str, Value]:
    """Return the values in a TOML text, by field name, as a layer for `build`.

    Raises:
        ConfigError: as `loads`, except for rules across fields, which `build` checks.
    """
    values, problems = _parse(text, recipe_type, name)
    raise_problems(problems, name)
    return values


def build(recipe_type: type[AnyRecipe], *layers: Values) -> AnyRecipe:
    """Return the recipe of the schema's defaults and layers of values; later layers win.

    Raises:
        ConfigError: names every unknown name, bad value and contradiction.
    """
    merged = {name: value for layer in layers for name, value in layer.items()}
    values, problems = check_values(recipe_type, merged)
    recipe, problems = check_recipe(recipe_type, values, problems)
    raise_problems(problems)
    return recipe


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes the same characters as TOML, except DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def _parse(
    text: str, recipe_type: type[AnyRecipe], name: str
) -> tuple[dict[str, Value], list[Problem]]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not valid TOML: {error}; correct the line") from error
    raw, problems = _flatten(document, fields_of(recipe_type))
    values, other_problems = check_values(recipe_type, raw)
    return values, [*problems, *other_problems]


def _flatten(
    document: dict[str, Any], fields: dict[str, Field]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the settings of all sections; settings elsewhere are problems."""
    sections = list(dict.fromkeys(field.section for field in fields.values()))
    values: dict[str, Any] = {}
    problems = []
    for section, content in document.items():
        if section in sections and isinstance(content, dict):
            for old_key, old_value in content.items():
                key, value = upgraded(section, old_key, old_value)
                if key in fields and fields[key].section == section:
                    values[key] = value
                else:
                    problems.append(Problem((key,), _misplaced(key, f"in [{section}]", fields)))
        else:
            problems.append(Problem((section,), _stray(section, content, sections, fields)))
    return values, problems


def _stray(name: str, content: object, sections: Iterable[str], fields: dict[str, Field]) -> str:
    """Return the problem of an entry at the top level that is not a known section."""
    if name in sections:
        return f"{name!r} must be a section; write [{name}] with its settings below"
    if isinstance(content, dict):
        return f"unknown section [{name}]; {suggestion(name, sections)}"
    return _misplaced(name, "outside any section", fields)


def _misplaced(key: str, where: str, fields: dict[str, Field]) -> str:
    if key in fields:
        return f"{key!r} is {where}; move it to [{fields[key].section}]"
    return f"unknown key {key!r} {where}; {suggestion(key, fields)}"
