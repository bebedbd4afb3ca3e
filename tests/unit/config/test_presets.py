import tomllib
from pathlib import Path

import pytest

from nmtkit.config.presets import NEWER_METHODS, PRESET_OF_ROW, PRESETS
from nmtkit.config.schema import TrainRecipe, Value, values_of
from nmtkit.config.toml import build, dumps, loads
from nmtkit.reporting.paper import TABLE_3

# Settings that table 3 of the paper does not give: they do not describe the model or its training.
SCHEDULE = {"max_updates", "save_every", "validate_every", "keep"}
UPDATES_IN_HALF_AN_HOUR = 2400  # of `small` on two cores with AVX2; docs/speedrun.md


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_recipe_that_a_file_preserves(name: str) -> None:
    recipe = build(TrainRecipe, PRESETS[name])
    assert loads(dumps(recipe), TrainRecipe, name) == recipe


# Table 3: the row base, and the differences of the other rows.
SHAPE = {
    **{"layers": 6, "model_size": 512, "feed_forward_size": 2048, "heads": 8, "key_size": 64},
    **{"value_size": 64, "dropout": 0.1, "label_smoothing": 0.1, "positions": "sinusoidal"},
}
ROWS: dict[str, dict[str, object]] = {
    "base": {},
    "table3-A1": {"heads": 1, "key_size": 512, "value_size": 512},
    "table3-A2": {"heads": 4, "key_size": 128, "value_size": 128},
    "table3-A3": {"heads": 16, "key_size": 32, "value_size": 32},
    "table3-A4": {"heads": 32, "key_size": 16, "value_size": 16},
    "table3-B1": {"key_size": 16},
    "table3-B2": {"key_size": 32},
    "table3-C1": {"layers": 2},
    "table3-C2": {"layers": 4},
    "table3-C3": {"layers": 8},
    "table3-C4": {"model_size": 256, "key_size": 32, "value_size": 32},
    "table3-C5": {"model_size": 1024, "key_size": 128, "value_size": 128},
    "table3-C6": {"feed_forward_size": 1024},
    "table3-C7": {"feed_forward_size": 4096},
    "table3-D1": {"dropout": 0.0},
    "table3-D2": {"dropout": 0.2},
    "table3-D3": {"label_smoothing": 0.0},
    "table3-D4": {"label_smoothing": 0.2},
    "table3-E": {"positions": "learned"},
    "big": {"model_size": 1024, "feed_forward_size": 4096, "heads": 16, "dropout": 0.3},
}


def trained_by(name: str) -> tuple[dict[str, object], dict[str, Value]]:
    """Return the settings of a preset that table 3 describes, and all others."""
    values = values_of(build(TrainRecipe, PRESETS[name]))
    assert values["encoder_layers"] == values.pop("decoder_layers")
    model = build(TrainRecipe, PRESETS[name]).model
    own = model.model_size // model.heads
    values |= {"key_size": model.key_size or own, "value_size": model.value_size or own}
    values["layers"] = values.pop("encoder_layers")
    return {key: values.pop(key) for key in SHAPE}, values


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_table_3_differ_from_base_as_in_the_paper(name: str) -> None:
    described, rest = trained_by(name)
    assert described == {**SHAPE, **ROWS[name]}
    if name != "big":
        assert rest == trained_by("base")[1]


def test_each_row_of_table_3_has_a_preset_and_no_two_are_equal() -> None:
    assert list(PRESET_OF_ROW) == list(TABLE_3)
    assert list(PRESET_OF_ROW.values()) == list(ROWS)
    recipes = [build(TrainRecipe, values) for values in PRESETS.values()]
    assert len(set(recipes)) == len(PRESETS)


def test_base_sets_no_more_than_its_schedule_and_big_trains_three_times_as_long() -> None:
    assert set(PRESETS["base"]) <= SCHEDULE
    assert build(TrainRecipe, PRESETS["big"]).training.max_updates == 300_000


def test_english_french_is_big_with_the_dropout_of_base() -> None:
    assert PRESETS["big-en-fr"] == {**PRESETS["big"], "dropout": 0.1}


@pytest.mark.parametrize("name", ["wsj", "wsj-semi"])
def test_parsers_have_the_shape_and_the_search_of_section_6_3(name: str) -> None:
    recipe = build(TrainRecipe, PRESETS[name])
    described, _ = trained_by(name)
    assert (described["layers"], described["model_size"]) == (4, 1024)
    # All other parameters remained unchanged from base.
    assert (described["feed_forward_size"], described["heads"], described["label_smoothing"]) == (
        2048,
        8,
        0.1,
    )
    search = recipe.search
    assert (search.beam, search.length_penalty, search.max_length_offset) == (21, 0.3, 300)
    assert recipe.model.attention_dropout == recipe.model.dropout


def test_small_warms_up_and_saves_five_checkpoints_in_half_an_hour_on_two_cores() -> None:
    recipe = build(TrainRecipe, PRESETS["small"])
    assert recipe.training.warmup_updates <= UPDATES_IN_HALF_AN_HOUR / 2
    assert 5 * recipe.checkpoints.save_every <= UPDATES_IN_HALF_AN_HOUR
    assert recipe.checkpoints.keep >= 5
    assert recipe.validation.validate_every <= UPDATES_IN_HALF_AN_HOUR / 2


@pytest.mark.parametrize("name", ["tatoeba/recipe", "wsj/craft", "wmt14/hour"])
def test_recipes_of_examples_have_the_blocks_and_the_training_of_small(name: str) -> None:
    sections = tomllib.loads(Path(f"examples/{name}.toml").read_text("utf-8")).values()
    given = {key: value for section in sections for key, value in section.items()}
    newer = NEWER_METHODS.keys() - {"warmup_updates"}
    assert {key: given.get(key) for key in newer} == {key: NEWER_METHODS[key] for key in newer}
