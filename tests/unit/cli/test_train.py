"""A run is announced before torch is imported; ranks begin with the model of their launcher."""

from dataclasses import replace
from pathlib import Path

import click
import pytest

from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import FORMAT, VERSION
from nmtkit.errors import DamagedError
from nmtkit.storage.durable import new_folder
from nmtkit.storage.run_folder import RunFolder
from nmtkit_cli.options import recipe_from
from nmtkit_cli.train import begin_training, inherited, rank_flags
from tests.messages import refuses
from tests.snapshots import tiny_run


def test_what_begins_is_reported_before_the_rest(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    with new_folder(data, FORMAT, VERSION, overwrite=False):
        pass
    with begin_training(data, tmp_path / "run") as report:
        report("more")
    first, second = capfd.readouterr().err.splitlines()
    assert first.endswith(f"training {tmp_path / 'run'} on {data} (loading PyTorch)")
    assert second.endswith(" more")


def test_a_dataset_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with (
        refuses(DamagedError, "none"),
        begin_training(tmp_path / "none", tmp_path / "run"),
    ):
        raise AssertionError


def test_ranks_get_the_options() -> None:
    assert rank_flags(None, update_vocabulary=False) == []
    assert rank_flags(Path("a model"), update_vocabulary=False) == ["--from=a model"]
    assert rank_flags(Path("m"), update_vocabulary=True) == ["--from=m", "--update-vocabulary"]


def test_without_a_parent_nothing_is_inherited() -> None:
    given = {"parent": None, "update_vocabulary": False, "out": Path("run")}
    assert inherited(given) == {}
    with refuses(click.UsageError, "--update-vocabulary --from"):
        inherited({**given, "update_vocabulary": True})


def test_a_run_that_exists_has_its_own_shape(tmp_path: Path) -> None:
    shape = ModelConfig(encoder_layers=3, dropout=0.25)
    run = tiny_run(tmp_path / "run", 2)
    given = {"parent": tmp_path / "gone", "update_vocabulary": False, "out": run.path}
    RunFolder(run.path).write_recipe(TrainRecipe(model=shape))
    assert inherited(given) == vars(shape)
    parent = tiny_run(tmp_path / "parent", 2)
    assert inherited({**given, "parent": parent.path, "out": tmp_path}) == vars(ModelConfig())


def test_a_preset_with_a_shape_inherits_nothing() -> None:
    shape = ModelConfig(encoder_layers=3, heads=4, dropout=0.25)
    values = vars(shape)
    fine_tuned = recipe_from(TrainRecipe, "fine-tune", None, {"dropout": 0.5}, values)
    assert fine_tuned.model == replace(shape, dropout=0.5)
    assert recipe_from(TrainRecipe, None, None, {}, values).model == shape
    assert recipe_from(TrainRecipe, "base", None, {}, values).model == ModelConfig()
