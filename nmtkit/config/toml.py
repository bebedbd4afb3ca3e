"""Recipes as TOML text, and recipes from layers of values.

A file needs only the settings that it changes; `dumps` writes all of them.
"""

import json
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from nmtkit.config.preprocessing import split_tag, split_weight
from nmtkit.config.problems import Problem, raise_problems, shown
from nmtkit.config.schema import (
    RECIPES,
    AnyRecipe,
    Field,
    Recipe,
    Value,
    Values,
    fields_of,
    sections_of,
    values_of,
)
from nmtkit.config.validate import check_recipe, check_values
from nmtkit.errors import ConfigError

MAX_CHARACTERS = 2**18
"""Longest recipe: thousands of training texts."""

REMOVED = {("engine", "compile"), ("translation", "compile")}
"""Section and name of settings of earlier versions, which changed only the speed.

Runs and models have them, so they are read, without effect.
"""


def dumps(recipe: Recipe) -> str:
    """Return the recipe as TOML: a table per section, with every setting that it may have."""
    values = values_of(recipe)
    lines: list[str] = []
    section = ""
    for name, field in fields_of(type(recipe)).items():
        if not field.in_recipes:
            continue
        if field.section != section:
            section = field.section
            lines += ["", f"[{section}]"]
        lines.append(f"{name} = {literal(field, values[name])}")
    return "\n".join(lines[1:]) + "\n"


def literal(field: Field, value: Value) -> str:
    """Return the value of a setting as TOML writes it."""
    return _literal(value or field.zero or value)


def read_text(path: Path) -> str:
    """Return the text of a recipe's file; of a file that is too long, enough to refuse it."""
    with path.open(encoding="utf-8-sig") as file:
        return file.read(MAX_CHARACTERS + 1)


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
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            f"{name}: more than {MAX_CHARACTERS:,} characters; give a recipe, such as from "
            "--print-config"
        )
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not valid TOML: {error}; correct the line") from error
    fields = fields_of(recipe_type)
    of_directions, wrong = _read_directions(document) if "train" in fields else ({}, [])
    _check_command(document, recipe_type, name)
    raw, problems = _flatten(document, fields)
    values, other_problems = check_values(recipe_type, raw)
    for key, entries in of_directions.items():
        given = values.get(key, ())
        values[key] = (*(given if isinstance(given, tuple) else ()), *entries)
    return values, [*wrong, *problems, *other_problems]


_TEXTS: dict[str, Callable[[str], str]] = {
    "train": lambda entry: split_weight(entry)[0],
    "valid": str,
    "held_out": str,
    "tag": lambda entry: split_tag(entry)[0],
}
"""Keys of a table [[corpora]] besides `direction`; returns the prefix of an entry of each."""


def _read_directions(document: dict[str, Any]) -> tuple[dict[str, list[str]], list[Problem]]:
    """Remove the tables [[corpora]]; return the texts of each setting, named with directions."""
    tables = document.pop("corpora", [])
    found: dict[str, list[str]] = {}
    is_list = isinstance(tables, list) and all(isinstance(one, dict) for one in tables)
    problems = [] if is_list else [Problem(("corpora",), "corpora are tables; write [[corpora]]")]
    for table in tables if is_list else ():
        direction = table.pop("direction", "")
        entries = [
            (key, entry)
            for key, value in table.items()
            for entry in (value if isinstance(value, list) else [value])
        ]
        is_known = table.keys() <= _TEXTS.keys() and isinstance(direction, str) and direction
        if not is_known or not all(isinstance(entry, str) for _, entry in entries):
            problems.append(
                Problem(
                    ("corpora",),
                    f"a table [[corpora]] ({shown(direction)}) has a direction, such as 'en-sv', "
                    f"and texts as {', '.join(_TEXTS)} of [corpus]; correct the others",
                )
            )
            continue
        for key, entry in entries:
            prefix = _TEXTS[key](entry)
            found.setdefault(key, []).append(f"{prefix}:{direction}{entry[len(prefix) :]}")
    return found, problems


def _check_command(document: dict[str, Any], recipe_type: type[AnyRecipe], name: str) -> None:
    """Raise ConfigError for the recipe of another command: one that has all of its sections.

    Of several, the one that has no others is named.
    """
    if document.keys() <= sections_of(recipe_type).keys():
        return
    if not all(isinstance(content, dict) for content in document.values()):
        return
    sections = {command: sections_of(one).keys() for command, one in RECIPES.items()}
    others = [command for command, known in sections.items() if document.keys() <= known]
    if others:
        other = min(others, key=lambda command: len(sections[command]))
        here = next(command for command, one in RECIPES.items() if one is recipe_type)
        raise ConfigError(
            f"{name}: this is a recipe of `nmtkit {other}`; give one of `nmtkit {here}`, such "
            f"as from `nmtkit {here} --print-config`"
        )


def _flatten(
    document: dict[str, Any], fields: dict[str, Field]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the settings of all sections; settings elsewhere are problems."""
    sections = list(dict.fromkeys(field.section for field in fields.values()))
    values: dict[str, Any] = {}
    problems = []
    for section, content in document.items():
        if section in sections and isinstance(content, dict):
            for key, value in content.items():
                field = fields.get(key)
                is_allowed = field and (field.in_recipes or not value)
                if field and field.section == section and is_allowed:
                    values[key] = value
                elif (section, key) not in REMOVED:
                    problems.append(_misplaced(key, f"in [{section}]", fields))
        else:
            problems.append(_stray(section, content, sections, fields))
    return values, problems


def _stray(
    name: str, content: object, sections: Collection[str], fields: dict[str, Field]
) -> Problem:
    """Return the problem of an entry at the top level that is not a known section."""
    if name in sections:
        text = f"{name!r} must be a section; write [{name}] with its settings below"
        return Problem((name,), text)
    if isinstance(content, dict):
        return Problem((name,), f"unknown section [{shown(name)[1:-1]}]", known=sections)
    return _misplaced(name, "outside any section", fields)


def _misplaced(key: str, where: str, fields: dict[str, Field]) -> Problem:
    if key in fields and not fields[key].in_recipes:
        option = f"{fields[key].flag} {fields[key].metavar}"
        text = f"{key!r} {where} would run programs of a file; delete it, and give {option}"
        return Problem((key,), f"{text} on the command line")
    if key in fields:
        return Problem((key,), f"{key!r} is {where}; move it to [{fields[key].section}]")
    return Problem((key,), f"unknown key {shown(key)} {where}", known=fields)
