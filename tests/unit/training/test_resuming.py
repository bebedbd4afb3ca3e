"""A run is continued with the settings that made it what it is, and others may change."""

from pathlib import Path

import pytest

from nmtkit.checkpoint import Resumable
from nmtkit.config.fields import Field, Value, fields_of, recipe_of, values_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.validate import check_values
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.training.resuming import check_same_run
from tests.tiny import tiny_dataset

FIELDS = fields_of(TrainRecipe)
OLD = TrainRecipe()
# What is learnt depends on these; the rest is how long, how it is watched, and on what machine.
FIXED_SECTIONS = {"model", "seed"}
FREE_SECTIONS = {"checkpoints", "search", "logging", "runtime", "engine", "ranks"}
FREE_IN_TRAINING = {"max_updates", "max_epochs", "max_minutes"}
FIXED_IN_VALIDATION = {"best_metric"}
METRICS = {"validate_metrics": "bleu,chrf", "best_metric": "bleu"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(tiny_dataset(tmp_path_factory.mktemp("corpus")))


def resumable(fingerprint: str) -> Resumable:
    """Return a checkpoint of a run with the settings of `OLD`."""
    return Resumable(
        path=Path("exp/run/checkpoints/00000007"),
        update=7,
        model={},
        recipe=OLD,
        provenance={"dataset": fingerprint},
        state_tensors={},
        state_values={},
    )


def with_values(**values: Value) -> TrainRecipe:
    return recipe_of(TrainRecipe, {**values_of(OLD), **values})


def another_value(field: Field) -> Value:
    """Return a permitted value that is not the default."""
    if field.kind is bool:
        return not field.default
    if field.setting.choices:
        return next(one for one in field.setting.choices if one != field.default)
    if field.kind is str:
        return METRICS[field.name]
    assert isinstance(field.default, int | float), f"{field.name} is of a new kind"
    return field.default + (1 if field.kind is int else 0.001)


def is_expected_to_be_fixed(field: Field) -> bool:
    if field.section == "training":
        return field.name not in FREE_IN_TRAINING
    if field.section == "validation":
        return field.name in FIXED_IN_VALIDATION
    assert field.section in FIXED_SECTIONS | FREE_SECTIONS, f"{field.section} is new"
    return field.section in FIXED_SECTIONS


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_every_setting_is_free_or_fixed_by_what_is_learnt(field: Field) -> None:
    expected = "fixed" if is_expected_to_be_fixed(field) else "free"
    assert field.setting.on_resume == expected


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_a_fixed_setting_that_changes_is_refused_by_name_and_a_free_one_is_not(
    field: Field, dataset: Dataset
) -> None:
    new = another_value(field)
    values, problems = check_values(TrainRecipe, {field.name: new})
    assert not problems
    recipe, old = with_values(**values), resumable(dataset.fingerprint)
    assert recipe != OLD
    if field.setting.on_resume == "free":
        check_same_run(old, recipe, dataset)
        return
    with pytest.raises(ConfigError) as raised:
        check_same_run(old, recipe, dataset)
    assert str(raised.value) == (
        "exp/run: cannot continue this run with other settings: "
        f"{field.name} was {field.default!r} and is now {new!r}; "
        "run the same command again, or choose another --out"
    )


def test_all_settings_that_changed_are_named_at_once(dataset: Dataset) -> None:
    recipe = with_values(heads=4, max_updates=7, seed=2)
    with pytest.raises(
        ConfigError, match="settings: heads was 8 and is now 4; seed was 1 and is now 2; run"
    ):
        check_same_run(resumable(dataset.fingerprint), recipe, dataset)


def test_the_same_settings_with_another_dataset_are_refused(dataset: Dataset) -> None:
    check_same_run(resumable(dataset.fingerprint), OLD, dataset)
    with pytest.raises(DamagedError, match=r"^exp/run: this run was begun with other data"):
        check_same_run(resumable("0123"), OLD, dataset)
