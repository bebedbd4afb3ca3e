import pytest

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build, dumps, loads

# What does not describe the model or how it learns: table 3 of the paper says nothing of it.
SCHEDULE = {"max_updates", "save_every", "validate_every", "keep"}
UPDATES_IN_HALF_AN_HOUR = 4500  # of `small` on two cores; benchmarks/README.md


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_recipe_that_survives_its_file(name: str) -> None:
    recipe = build(TrainRecipe, PRESETS[name])
    assert loads(dumps(recipe), TrainRecipe, name) == recipe


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_what_it_names_and_nothing_else(name: str) -> None:
    defaults = values_of(TrainRecipe())
    assert values_of(build(TrainRecipe, PRESETS[name])) == {**defaults, **PRESETS[name]}


def test_base_is_the_paper_s_base_model() -> None:
    """Table 3, row base, and section 5."""
    model = build(TrainRecipe, PRESETS["base"]).model
    assert (model.encoder_layers, model.decoder_layers) == (6, 6)
    assert (model.model_size, model.feed_forward_size, model.heads) == (512, 2048, 8)
    assert model.dropout == 0.1
    assert set(PRESETS["base"]) <= SCHEDULE


def test_big_is_the_paper_s_big_model() -> None:
    """Table 3, row big."""
    recipe = build(TrainRecipe, PRESETS["big"])
    model = recipe.model
    assert (model.encoder_layers, model.decoder_layers) == (6, 6)
    assert (model.model_size, model.feed_forward_size, model.heads) == (1024, 4096, 16)
    assert model.dropout == 0.3
    assert recipe.training.max_updates == 300_000


def test_small_warms_up_and_saves_five_checkpoints_in_half_an_hour_on_two_cores() -> None:
    recipe = build(TrainRecipe, PRESETS["small"])
    assert recipe.training.warmup_updates <= UPDATES_IN_HALF_AN_HOUR / 2
    assert 5 * recipe.checkpoints.save_every <= UPDATES_IN_HALF_AN_HOUR / 2
    assert recipe.checkpoints.keep >= 5
    assert recipe.validation.validate_every <= UPDATES_IN_HALF_AN_HOUR / 2


def test_presets_name_settings_that_exist() -> None:
    assert set().union(*PRESETS.values()) <= set(fields_of(TrainRecipe))
