"""Keyword arguments of the Python API: the same settings as the command's, and checked at once."""

import inspect
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch

import nmtkit
from nmtkit.config.fields import fields_of, sections_of
from nmtkit.config.keywords import (
    ScoreSettings,
    TranslateSettings,
    as_arguments,
    naming_arguments,
    recipe_of_keywords,
)
from nmtkit.config.schema import ScoreRecipe, TranslateRecipe
from nmtkit.errors import ConfigError, DataError, ResourceError
from tests.messages import refuses

COMMAND_ONLY: dict[type[Any], set[str]] = {
    TranslateRecipe: {
        *("input_format", "output_format", "scores"),  # results are objects
        *("chunk_lines", "stream", "devices"),  # all lines are given; one process
    },
    ScoreRecipe: {
        *("test_set", "paired_bs", "paired_ar", "trials"),  # one system, references given
        *("sentence_level", "by_length", "by_frequency", "metric_command", "input_format"),
        *("max_tokens", "max_length", "precision", "device", "threads"),  # of a model
    },
}
KEYWORDS: dict[type[Any], type[Any]] = {
    TranslateRecipe: TranslateSettings,
    ScoreRecipe: ScoreSettings,
}
FUNCTIONS: dict[type[Any], Callable[..., Any]] = {
    TranslateRecipe: nmtkit.load,
    ScoreRecipe: nmtkit.evaluate,
}
WIDER = {
    "shortlist": str | PathLike[str] | None,
    "prm": str | PathLike[str] | None,
    "metric": get_type_hints(ScoreSettings)["metric"],
}


@pytest.mark.parametrize("recipe_type", KEYWORDS)
def test_keywords_are_the_settings_with_their_types(recipe_type: type[Any]) -> None:
    hints = {
        name: hint
        for section in sections_of(recipe_type).values()
        for name, hint in get_type_hints(section).items()
    }
    expected = {name: WIDER.get(name, hints[name]) for name in fields_of(recipe_type)}
    for name in COMMAND_ONLY[recipe_type]:
        del expected[name]
    assert get_type_hints(KEYWORDS[recipe_type]) == expected
    assert [*get_type_hints(KEYWORDS[recipe_type])] == [*expected], "the order of the schema"


@pytest.mark.parametrize("recipe_type", KEYWORDS)
def test_signature_and_help_have_every_setting_with_its_default(recipe_type: type[Any]) -> None:
    function, fields = FUNCTIONS[recipe_type], fields_of(recipe_type)
    found = {
        name: one.default
        for name, one in inspect.signature(function).parameters.items()
        if one.kind == inspect.Parameter.KEYWORD_ONLY
    }
    expected = {name: fields[name].default for name in get_type_hints(KEYWORDS[recipe_type])}
    assert found == expected
    text = " ".join(str(inspect.getdoc(function)).split())
    for name in expected:
        assert f" {name}: {as_arguments(fields[name].setting.help)[:30].strip()}" in text
    assert "--" not in text


def recipe(**settings: object) -> TranslateRecipe:
    known = TranslateSettings.__annotations__
    return recipe_of_keywords(TranslateRecipe, known, settings, {"output_format": "json"})


def test_a_recipe_has_the_given_values_and_the_defaults() -> None:
    found = recipe(beam=8, n_best=2, shortlist=Path("short"))
    assert (found.search.beam, found.output.n_best) == (8, 2)
    assert found.translation.shortlist == "short"
    assert found.search.length_penalty == TranslateRecipe().search.length_penalty
    assert found.output.output_format == "json"


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"beem": 8}, "beem; beam"),
        ({"devices": 2}, "devices"),
        ({"beam": "8"}, "beam 8 1 10000"),
        ({"n_best": 8}, "n_best 8 beam 4"),
        ({"top_k": 2}, "top_k 2 sample"),
        ({"n_bst": 2, "beam": 0}, "n_bst; n_best beam 0 1 10000"),
    ],
)
def test_wrong_keywords_are_named_with_a_suggestion(settings: dict[str, object], keys: str) -> None:
    with refuses(ConfigError, keys):
        recipe(**settings)


def test_flags_in_messages_become_arguments_and_other_dashes_stay() -> None:
    text = "give --n-best [--on-too-long split] or (--beam 4); a--b, e-mail, ---x"
    expected = "give n_best [on_too_long split] or (beam 4); a--b, e-mail, ---x"
    assert as_arguments(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x/--beam/nope: no such folder",
        "--beam/nope: a",
        "no metric '--beam'",
        "'a --beam b'",
        "--x",
    ],
)
def test_paths_quoted_texts_and_unknown_flags_in_messages_stay(text: str) -> None:
    assert as_arguments(text) == text


def test_values_of_numpy_and_torch_are_those_of_python() -> None:
    found = recipe(
        beam=np.int64(3), length_penalty=np.float32(1), device=torch.device("cpu"), shortlist=None
    )
    assert found == recipe(beam=3, length_penalty=1.0, device="cpu")
    assert type(found.search.beam) is int
    with refuses(ConfigError, "beam None"):
        recipe(beam=None)


@pytest.mark.parametrize("kind", [DataError, ResourceError])
def test_errors_keep_their_type(kind: type[DataError] | type[ResourceError]) -> None:
    with refuses(kind, "line 3 min_length_offset", recorded=False), naming_arguments():
        raise kind("line 3: loosen --min-length-offset")
