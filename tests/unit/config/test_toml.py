import string
import time
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nmtkit.config.schema import RECIPES as RECIPES_OF_COMMANDS
from nmtkit.config.schema import (
    Field,
    PreprocessRecipe,
    RerankRecipe,
    ScoreRecipe,
    TrainRecipe,
    TranslateRecipe,
    Value,
    fields_of,
    recipe_of,
    sections_of,
    values_of,
)
from nmtkit.config.toml import (
    build,
    dumps,
    literal,
    loads,
    read_values,
)
from nmtkit.errors import ConfigError
from tests.messages import refuses

AnyType = type[PreprocessRecipe | TrainRecipe | TranslateRecipe]
RECIPES: list[AnyType] = [PreprocessRecipe, TrainRecipe, TranslateRecipe]

LONGEST_S = 5.0
"""Longest time to refuse a file; today a tenth of it, and minutes without bounds."""

# Text that UTF-8 files and paths can contain.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def permitted(field: Field) -> st.SearchStrategy[Any]:
    if field.choices:
        return st.sampled_from([*field.choices])
    if field.kind is bool:
        return st.booleans()
    if field.kind is tuple:
        return st.lists(TEXTS, max_size=3).map(tuple)
    if field.kind is int:
        return st.integers(int(field.minimum), int(field.maximum or 2**63 - 1))
    if field.kind is float:
        return st.floats(field.minimum, field.maximum, allow_infinity=False)
    return TEXTS


@pytest.mark.parametrize("recipe_type", RECIPES)
@given(data=st.data())
@settings(max_examples=15)
def test_written_values_are_read_back_unchanged(recipe_type: AnyType, data: st.DataObject) -> None:
    strategies = {name: permitted(field) for name, field in fields_of(recipe_type).items()}
    recipe = recipe_of(recipe_type, data.draw(st.fixed_dictionaries(strategies)))
    assert recipe_of(recipe_type, read_values(dumps(recipe), recipe_type, "file")) == recipe


@pytest.mark.parametrize("recipe_type", RECIPES_OF_COMMANDS.values(), ids=RECIPES_OF_COMMANDS)
@pytest.mark.parametrize("place", ["[metrics]\n", "", "[model]\n", "[output]\n"])
def test_no_recipe_names_a_program(recipe_type: AnyType, place: str) -> None:
    text = f'{place}metric_command = ["x=touch marker"]\n'
    is_known = "metric_command" in fields_of(recipe_type) and place in ("[metrics]\n", "")
    keys = "file 'metric_command'; --metric-command NAME=COMMAND" if is_known else "file"
    for read in (read_values, loads):
        with refuses(ConfigError, keys, recorded=is_known):
            read(text, recipe_type, "file")


@pytest.mark.parametrize("recipe_type", [ScoreRecipe, RerankRecipe])
def test_a_written_recipe_has_no_program_and_an_empty_list_of_them_is_read(
    recipe_type: type[ScoreRecipe | RerankRecipe],
) -> None:
    recipe = recipe_of(recipe_type, {"metric_command": ("x=cat",), "lowercase": True})
    assert "metric_command" not in dumps(recipe)
    assert read_values(dumps(recipe), recipe_type, "file")["lowercase"] is True
    old = "[metrics]\nmetric_command = []\n"  # as it was printed by earlier versions
    assert recipe_of(recipe_type, read_values(old, recipe_type, "file")) == recipe_type()


def test_later_layers_override_earlier_ones_and_defaults() -> None:
    recipe = build(TrainRecipe, {"heads": 4, "keep": 2}, {"heads": 2}, {})
    assert recipe.model.heads == 2
    assert recipe.checkpoints.keep == 2
    assert recipe.checkpoints.save_every == TrainRecipe().checkpoints.save_every


def test_whole_numbers_are_valid_floats_but_not_the_reverse() -> None:
    recipe = loads("[model]\ndropout = 0\n", TrainRecipe, "file")
    assert values_of(recipe)["dropout"] == 0.0
    assert isinstance(recipe.model.dropout, float)
    with refuses(ConfigError, "heads 8.0"):
        loads("[model]\nheads = 8.0\n", TrainRecipe, "file")


@given(data=st.data(), letter=st.sampled_from(string.ascii_lowercase))
def test_a_key_with_one_wrong_letter_is_refused_with_a_suggestion(
    data: st.DataObject, letter: str
) -> None:
    recipe_type = data.draw(st.sampled_from(RECIPES))
    fields = fields_of(recipe_type)
    key = data.draw(st.sampled_from(list(fields)))
    place = data.draw(st.integers(0, len(key) - 1))
    wrong = key[:place] + letter + key[place + 1 :]
    assume(wrong not in fields)
    section = fields[key].section
    with refuses(ConfigError, f"file {wrong} [{section}]", recorded=False) as caught:
        read_values(f"[{section}]\n{wrong} = 1\n", recipe_type, "file")
    suggested = str(caught.value).split("'")[-2]
    likeness = {name: SequenceMatcher(None, name, wrong).ratio() for name in (suggested, key)}
    assert suggested in fields
    assert suggested.startswith(wrong) or likeness[suggested] >= likeness[key]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("[model\n", "file TOML"),
        ("[model]\nheads = 1\nheads = 2\n", "TOML line 3"),
        ("a = " + "[" * 10_000, "file TOML"),
        ("[modle]\nheads = 8\n", "file [modle]; model"),
        ("[xyzzy]\n", "file [xyzzy]; model training checkpoints"),
        ("model = 3\n", "file model; [model]"),
        ("heads = 8\n", "file heads; [model]"),
        ("haeds = 8\n", "haeds; heads"),
        ("[search]\nheads = 8\n", "file heads [search]; [model]"),
        ("[[model]]\nheads = 8\n", "file model"),
        ("[model.heads]\nx = 8\n", "file heads {'x': 8}"),
    ],
)
def test_the_error_of_a_malformed_file_says_where_and_how_to_fix_it(text: str, keys: str) -> None:
    with refuses(ConfigError, keys):
        loads(text, TrainRecipe, "file")


def test_one_error_has_all_problems_of_a_file() -> None:
    text = """
        [model]
        droput = 0.1
        model_size = 513
        norm = "prex"
        [training]
        beam = 4
        [traning]
        [search]
        length_penalty = -1
    """
    keys = (
        "recipe.toml droput [model]; dropout beam [training] [search] [traning] training norm prex "
        "pre [model.norm] length_penalty -1 [search.length_penalty] heads 8 model_size 513 3 9"
    )
    with refuses(ConfigError, keys):
        loads(text, TrainRecipe, "recipe.toml")


def test_a_layer_file_may_omit_required_settings() -> None:
    values: dict[str, Value] = read_values('[corpus]\ntrain = ["a"]\n', PreprocessRecipe, "file")
    assert values == {"train": ("a",)}


def test_a_setting_with_a_problem_is_reported_once() -> None:
    with refuses(ConfigError, "file heads many 1 65536 [model.heads]") as caught:
        loads('[model]\nheads = "many"\nmodel_size = 510\n', TrainRecipe, "file")
    assert "model_size" not in str(caught.value)


def test_unknown_names_in_a_layer_are_refused() -> None:
    with refuses(ConfigError, "haeds; heads"):
        build(TrainRecipe, {"haeds": 8})


@pytest.mark.parametrize("recipe_type", RECIPES)
def test_a_single_setting_is_written_as_in_its_recipe(recipe_type: AnyType) -> None:
    recipe = recipe_type()
    values = values_of(recipe)
    lines = [
        f"{name} = {literal(field, values[name])}" for name, field in fields_of(recipe_type).items()
    ]
    assert lines == [line for line in dumps(recipe).split("\n") if " = " in line]


@pytest.mark.parametrize("head", ["", "[model]\n"])
def test_of_many_unknown_keys_the_first_are_named_quickly(head: str) -> None:
    keys = [f"k{number:x}" for number in range(25_000)]
    begin = time.process_time()
    with refuses(ConfigError, "file; 24,990") as caught:
        read_values(head + "".join(f"{key}=1\n" for key in keys), TrainRecipe, "file")
    assert time.process_time() - begin < LONGEST_S
    assert [key for key in keys if f"'{key}'" in str(caught.value)] == keys[:10]


def test_a_long_unknown_name_is_truncated_in_the_message() -> None:
    name = "k" * 200_000
    for text in (f"{name} = 1", f"[{name}]", f"[model]\n{name} = 1"):
        with refuses(ConfigError, "file unknown") as caught:
            read_values(text, TrainRecipe, "file")
        assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("here", RECIPES_OF_COMMANDS)
@pytest.mark.parametrize("other", RECIPES_OF_COMMANDS)
def test_a_recipe_of_another_command_is_named_in_one_sentence(here: str, other: str) -> None:
    own, text = RECIPES_OF_COMMANDS[here], dumps(RECIPES_OF_COMMANDS[other]())
    if sections_of(RECIPES_OF_COMMANDS[other]).items() <= sections_of(own).items():
        # Its own recipe; `nmtkit translate` also takes that of `nmtkit calibrate`, a part of it.
        assert recipe_of(own, read_values(text, own, "file")) == own()
        return
    with refuses(ConfigError, f"file nmtkit {other}; nmtkit {here} --print-config"):
        read_values(text, RECIPES_OF_COMMANDS[here], "file")


def test_a_setting_with_the_name_of_another_section_is_not_taken_for_a_recipe() -> None:
    with refuses(ConfigError, "file output"):
        read_values("output = 1\n", TrainRecipe, "file")


@pytest.mark.parametrize(
    ("section", "recipe"), [("engine", TrainRecipe), ("translation", TranslateRecipe)]
)
@pytest.mark.parametrize("value", ["on", "off"])
def test_settings_of_earlier_versions_have_no_effect(
    section: str, recipe: AnyType, value: str
) -> None:
    assert loads(f'[{section}]\ncompile = "{value}"\n', recipe, "file") == recipe()
    with refuses(ConfigError, "file compile search; --print-config"):
        loads(f'[search]\ncompile = "{value}"\n', TranslateRecipe, "file")
