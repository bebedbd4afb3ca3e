"""The keyword arguments of the Python API: types, help, checks, and their names in messages.

Names and types are those of the settings, which have the defaults, ranges and help; paths may be
objects. Options that concern files, streams and processes of a command have no keyword.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike, fspath
from textwrap import fill
from typing import Any, ParamSpec, TypedDict, TypeVar

from nmtkit.config.fields import AnyRecipe, Field, Values, fields_of
from nmtkit.config.problems import Problem, raise_problems, shown
from nmtkit.config.schema import ScoreRecipe, TrainRecipe, TranslateRecipe
from nmtkit.config.validate import check_recipe, check_values
from nmtkit.errors import NmtkitError

P = ParamSpec("P")
R = TypeVar("R")

_FLAG = re.compile(
    r"""(?<!\w)'[^']*'|(?<!\w)"[^"]*"|(?<![^\s(\[])--(?P<name>[a-z-]+)(?=[,;:.)\]]*(?:\s|$))"""
)
"""A quoted text, or a flag that stands as a word; a part of a path is none."""


class TranslateSettings(TypedDict, total=False):
    """Settings of `nmtkit.load`: options of `nmtkit translate`."""

    beam: int
    length_penalty: float
    length_penalty_form: str
    stop_when: str
    max_length_ratio: float
    max_length_offset: int
    max_output_length: int
    min_length_ratio: float
    min_length_offset: int
    no_repeat_ngram: int
    ban_unknown: bool
    malformed_trees: str
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    epsilon_cutoff: float
    n_best: int
    alignments: bool
    token_scores: bool
    attention: bool
    precision: str
    max_tokens: int
    batch_size: int
    shortlist: str | PathLike[str] | None
    compile: str
    max_source_length: int
    on_too_long: str
    seed: int
    device: str
    threads: int


class ScoreSettings(TypedDict, total=False):
    """Settings of `nmtkit.evaluate`: options of `nmtkit score`."""

    metric: str | Sequence[str]
    tokenize: str
    lowercase: bool
    language_pair: str
    prm: str | PathLike[str] | None
    confidence: bool
    resamples: int


def documented(
    recipe_type: type[AnyRecipe], keywords: type[Any]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add keywords, with the defaults and help of their settings, to the help of a function."""

    def add(function: Callable[P, R]) -> Callable[P, R]:
        fields, types = fields_of(recipe_type), keywords.__annotations__
        plain = signature(function)
        positional = [one for one in plain.parameters.values() if one.kind != Parameter.VAR_KEYWORD]
        named = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=fields[name].default, annotation=kind)
            for name, kind in types.items()
        ]
        function.__signature__ = plain.replace(parameters=[*positional, *named])  # type: ignore[attr-defined]
        entries = [
            fill(
                f"{name}: {as_arguments(fields[name].setting.help)}",
                width=100,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
            )
            for name in types
        ]
        function.__doc__ = "\n".join([f"{function.__doc__}", "    Settings:", *entries])
        return function

    return add


def recipe_of_keywords(
    recipe_type: type[AnyRecipe],
    known: Collection[str],
    settings: Mapping[str, Any],
    implied: Values,
) -> AnyRecipe:
    """Build a recipe of keyword arguments.

    Args:
        recipe_type: the type of the recipe.
        known: names of the keywords.
        settings: the arguments; None leaves out a setting that is empty by default.
        implied: values of settings that have no keyword.

    Raises:
        ConfigError: all problems of names and values.
    """
    fields = fields_of(recipe_type)
    problems = [
        Problem((name,), f"{name} is an option of the command line only; leave it out")
        if name in fields
        else Problem((name,), f"unknown setting {shown(name)}", known=known)
        for name in settings
        if name not in known
    ]
    given = {
        name: _plain(value)
        for name, value in settings.items()
        if name in known and not (value is None and fields[name].default == "")
    }
    values, bad = check_values(recipe_type, given)
    recipe, problems = check_recipe(recipe_type, {**values, **implied}, [*problems, *bad])
    with naming_arguments():
        raise_problems([_without_place(problem, fields) for problem in problems])
    return recipe


def as_arguments(text: str) -> str:
    """Write the flags of settings in a text as arguments: --n-best becomes n_best."""
    recipes = (TrainRecipe, TranslateRecipe, ScoreRecipe)
    names = {name for recipe in recipes for name in fields_of(recipe)}

    def renamed(found: re.Match[str]) -> str:
        name = (found["name"] or "").replace("-", "_")
        return name if name in names else found[0]

    return _FLAG.sub(renamed, text)


@contextmanager
def naming_arguments() -> Iterator[None]:
    """Name arguments instead of flags in the messages of errors."""
    try:
        yield
    except NmtkitError as error:
        error.args = (as_arguments(str(error)),)
        raise


def _plain(value: object) -> object:
    """Convert paths, numbers of NumPy and devices of PyTorch to Python's types."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    # By its name, because torch is imported by the first `load` only.
    return str(value) if type(value).__qualname__ == "device" else value


def _without_place(problem: Problem, fields: Mapping[str, Field]) -> Problem:
    """Return a problem without the place of its setting in a configuration file."""
    text = problem.text
    for name in problem.keys:
        if name in fields:
            text = text.removesuffix(f" [{fields[name].section}.{name}]")
    return replace(problem, text=text)
