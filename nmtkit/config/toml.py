"""Recipes as TOML text, and a recipe from layers of values.

A file names only what it changes; `dumps` names everything, so that `loads` needs no defaults.
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
    """Return the recipe as TOML: a table a section, every effective value."""
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
    """Return the recipe that a TOML text describes, defaults filled in.

    Args:
        text: the TOML.
        recipe_type: the recipe that it is for.
        name: what messages call it, such as its path.

    Raises:
        ConfigError: naming every problem of the text at once.
    """
    values, problems = _parse(text, recipe_type, name)
    recipe, problems = check_recipe(recipe_type, values, problems)
    raise_problems(problems, name)
    return recipe


def read_values(text: str, recipe_type: type[AnyRecipe], name: str) -> dict[str, Value]:
    """Return the values that a TOML text sets, by field name, as a layer for `build`.

    Raises:
        ConfigError: as `loads`, but for rules across fields, which `build` checks.
    """
    values, problems = _parse(text, recipe_type, name)
    raise_problems(problems, name)
    return values


def build(recipe_type: type[AnyRecipe], *layers: Values) -> AnyRecipe:
    """Return the recipe of the schema's defaults overlaid by the layers, the last one on top.

    Raises:
        ConfigError: naming every unknown name, bad value and contradiction at once.
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
        # JSON escapes what TOML wants escaped, but for DEL.
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
        raise ConfigError(f"{name}: not valid TOML: {error}; mend the line") from error
    raw, problems = _flatten(document, fields_of(recipe_type))
    values, other_problems = check_values(recipe_type, raw)
    return values, [*problems, *other_problems]


def _flatten(
    document: dict[str, Any], fields: dict[str, Field]
) -> tuple[dict[str, Any], list[Problem]]:
    """Take settings out of their sections; whatever stands elsewhere is a problem."""
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
    """Say what is wrong with something at the top level of a file that is no known section."""
    if name in sections:
        return f"{name!r} must be a section; write [{name}] with its settings below"
    if isinstance(content, dict):
        return f"unknown section [{name}]; {suggestion(name, sections)}"
    return _misplaced(name, "outside any section", fields)


def _misplaced(key: str, where: str, fields: dict[str, Field]) -> str:
    if key in fields:
        return f"{key!r} stands {where}; move it to [{fields[key].section}]"
    return f"unknown key {key!r} {where}; {suggestion(key, fields)}"
