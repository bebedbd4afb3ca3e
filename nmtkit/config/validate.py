"""Checks of single settings: names, types, choices, ranges, missing values.

All problems are collected and raised as one error. Rules across settings are in rules.py and
training_rules.py.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nmtkit.config.other_toolkits import answer_to_word
from nmtkit.config.problems import Problem, misspelled, shown
from nmtkit.config.rules import contradictions
from nmtkit.config.schema import AnyRecipe, Field, Value, Values, fields_of, recipe_of

LARGEST_INTEGER = 2**63 - 1
LONGEST_TEXT = 4096
"""Characters of a text setting, as the bytes of a path on Linux."""

_TEXT = f"UTF-8 text of at most {LONGEST_TEXT} characters"


def check_values(
    recipe_type: type[AnyRecipe], values: Mapping[str, Any]
) -> tuple[dict[str, Value], list[Problem]]:
    """Check names, types, choices and ranges.

    Returns:
        The valid values, converted to the types of their fields (whole numbers to floats, lists
        to tuples), and the problems of the others.
    """
    fields = fields_of(recipe_type)
    good: dict[str, Value] = {}
    problems = []
    for name, value in values.items():
        if name not in fields:
            problems.append(Problem((name,), f"unknown key {shown(name)}", known=fields))
            continue
        fitted = _fit(fields[name], value)
        if fitted is not None and _is_permitted(fields[name], fitted):
            good[name] = fitted
        else:
            problems.append(Problem((name,), _bad_value(fields[name], value)))
    return good, problems


def check_recipe(
    recipe_type: type[AnyRecipe], values: Values, problems: Sequence[Problem]
) -> tuple[AnyRecipe, list[Problem]]:
    """Build a recipe of valid values; check for missing settings and contradictions.

    Args:
        recipe_type: the type of the recipe.
        values: values from `check_values`.
        problems: known problems; their settings are not checked again.

    Returns:
        The recipe, and all problems, known ones first.
    """
    recipe = recipe_of(recipe_type, values)
    known = {key for problem in problems for key in problem.keys}
    found = [*_missing(recipe_type, values), *contradictions(recipe)]
    return recipe, [*problems, *(new for new in found if known.isdisjoint(new.keys))]


def _fit(field: Field, value: object) -> Value | None:
    """Return the value converted to the type of its field; None if it has another type."""
    kind = field.kind
    if field.zero and value == field.zero:
        return kind(0)  # type: ignore[no-any-return]
    if kind is tuple and isinstance(value, str | list | tuple):
        value = (value,) if isinstance(value, str) else value
        return tuple(value) if all(_is_text(entry) for entry in value) else None
    if isinstance(value, bool):
        return value if kind is bool else None
    if isinstance(value, int) and abs(value) <= LARGEST_INTEGER:
        return kind(value) if kind in (int, float) else None
    if isinstance(value, float) and math.isfinite(value):
        return value if kind is float else None
    if isinstance(value, str) and _is_text(value):
        return value if kind is str else None
    return None


def _is_text(value: object) -> bool:
    """Return whether a value is short text without null and lone surrogates (undecodable bytes)."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return False
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)


def _is_permitted(field: Field, value: Value) -> bool:
    if isinstance(value, str):
        return not field.choices or value in field.choices
    if isinstance(value, tuple):
        return True
    is_in_range = field.minimum <= value and (field.maximum is None or value <= field.maximum)
    return is_in_range or value == field.default == 0


def _bad_value(field: Field, value: object) -> str:
    text = str(value)
    hint = answer_to_word(text, field.name) or misspelled(text, field.choices)
    expected = "; ".join(filter(None, [_expected(field), hint]))
    return f"{field.name} ({shown(value)}) must be {expected} {field.place}"


def _expected(field: Field) -> str:
    """Return a description of a field's valid values."""
    if field.kind is bool:
        return "true or false"
    if field.kind is tuple:
        return f'a list of texts, such as ["one", "two"], of at most {LONGEST_TEXT} characters each'
    if field.kind is str:
        return f"one of: {', '.join(field.choices)}" if field.choices else _TEXT
    is_apart = isinstance(field.default, int | float) and field.default < field.minimum
    number = f"{field.zero or field.default!r} or " if field.zero or is_apart else ""
    number += "a whole number" if field.kind is int else "a number"
    if field.maximum is not None:
        return f"{number} from {field.minimum} to {field.maximum}"
    limit = "below 2**63" if field.kind is int else "finite"
    return f"{number} of at least {field.minimum}, {limit}"


def _missing(recipe_type: type[AnyRecipe], values: Values) -> Iterator[Problem]:
    for name, field in fields_of(recipe_type).items():
        if field.required and not values.get(name):
            yield Problem((name,), f"{name} is missing; give {field.flag} {field.place}")
