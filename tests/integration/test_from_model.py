"""A run that begins with a model: its update 0 is that model, and it resumes without it."""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.storage.checkpoint import list_checkpoints
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.initialization import Parent
from nmtkit.training.run import train
from tests.commands import nmtkit_in_text
from tests.launching import SETTINGS, parameters
from tests.messages import check_errors, refused
from tests.ranks import DONE, recipe_of, train_on
from tests.snapshots import read_tensors
from tests.training import assert_same_tensors, logged, with_updates

SOURCE = "a b c\nh g\nd\n\nf e d c b a\n"


@pytest.fixture(scope="module")
def parent(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that others begin with, and only read."""
    run = tmp_path_factory.mktemp("parent") / "parent"
    assert train_on(1, recipe_of(dropout=0.1, micro_batches=2), data, run) == [DONE]
    return run


def child_recipe(max_updates: int) -> TrainRecipe:
    """Return a recipe for the parent's shape that saves and validates every update."""
    recipe = recipe_of(dropout=0.2, micro_batches=4, max_updates=max_updates)
    return replace(
        recipe,
        checkpoints=replace(recipe.checkpoints, save_every=1, keep=20),
        validation=replace(recipe.validation, validate_every=1),
    )


def translate(model: Path) -> str:
    done = nmtkit_in_text("translate", model, "--scores", "--device", "cpu", stdin=SOURCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_update_0_is_the_parent(ema_decay: float, data: Path, parent: Path, tmp_path: Path) -> None:
    recipe = child_recipe(max_updates=1)
    recipe = replace(recipe, training=replace(recipe.training, ema_decay=ema_decay))
    assert train_on(2, recipe, data, tmp_path, parent=Parent(parent)) == [DONE] * 2
    start = RunFolder(tmp_path).model_dir(0)
    assert_same_tensors(read_tensors(start), read_tensors(parent))
    assert translate(start) == translate(parent)
    assert not torch.equal(parameters(tmp_path), parameters(parent))
    of_parent, of_start = logged(parent, "validation")[-1], logged(tmp_path, "validation")[0]
    assert of_start["update"] == 0
    assert of_start["nll"] == pytest.approx(of_parent["nll"], rel=1e-12)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_run_resumes_at_every_update_without_its_parent(
    size: int, data: Path, parent: Path, tmp_path: Path
) -> None:
    def be_killed(_: int, update: int) -> None:
        if update == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    origin = Parent(parent)
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    assert train_on(size, child_recipe(6), data, whole, parent=origin) == [DONE] * size
    copy = Parent(shutil.copytree(parent, tmp_path / "copy"))
    ends = train_on(size, child_recipe(6), data, resumed, hook=be_killed, parent=copy)
    assert {end.exit_code for end in ends} == {-signal.SIGKILL}
    shutil.rmtree(copy.path)
    for updates in range(1, 7):
        recipe = child_recipe(updates)
        assert train_on(size, recipe, data, resumed, parent=copy) == [DONE] * size
    assert_same_tensors(read_tensors(resumed / "last"), read_tensors(whole / "last"))
    losses = [
        [(record["update"], record["nll"]) for record in logged(run, "validation")]
        for run in (whole, resumed)
    ]
    assert losses[0] == losses[1]
    assert [update for update, _ in losses[0]] == [*range(7)]


def test_the_start_is_no_checkpoint_to_average(data: Path, parent: Path, tmp_path: Path) -> None:
    train(child_recipe(1), data, tmp_path, parent=Parent(parent))
    scheduled = {one.update: one.is_scheduled for one in list_checkpoints(RunFolder(tmp_path))}
    assert scheduled == {0: False, 1: True}


def test_training_that_only_harms_keeps_the_parent_as_the_best(
    data: Path, parent: Path, tmp_path: Path
) -> None:
    recipe = child_recipe(4)
    harmful = replace(recipe.training, learning_rate_scale=1000.0)
    recipe = replace(
        recipe, training=harmful, checkpoints=replace(recipe.checkpoints, keep=1, save_every=1)
    )
    train(recipe, data, tmp_path, parent=Parent(parent))
    best = RunFolder(tmp_path).best()
    assert best is not None
    assert best.name == "00000000"


# ----------------------------------------------------------------------------------- every epoch


def test_every_epoch_is_saved_and_validated(data: Path, tmp_path: Path) -> None:
    """The epochs of the tiny dataset have two updates."""
    recipe = with_updates(recipe_of(0.1, micro_batches=1), 8)
    recipe = replace(
        recipe,
        checkpoints=replace(recipe.checkpoints, save_every=100, every_epoch=True),
        validation=replace(recipe.validation, validate_every=100),
    )
    train(recipe, data, tmp_path / "whole")
    ends = [record["update"] for record in logged(tmp_path / "whole", "validation")]
    per_epoch = 2
    assert ends == [*range(per_epoch, 8, per_epoch), 8]
    assert len(ends) > 2
    scheduled = {
        one.update for one in list_checkpoints(RunFolder(tmp_path / "whole")) if one.is_scheduled
    }
    assert scheduled == {*range(per_epoch, 9, per_epoch)}
    for updates in range(1, 9):
        train(with_updates(recipe, updates), data, tmp_path / "resumed")
    for run in ("whole", "resumed"):
        assert {*ends} <= {record["update"] for record in logged(tmp_path / run, "validation")}
    assert torch.equal(parameters(tmp_path / "whole"), parameters(tmp_path / "resumed"))


def test_without_validation_every_epoch_is_only_saved(data: Path, tmp_path: Path) -> None:
    recipe = with_updates(recipe_of(0.1, micro_batches=1), 7)
    recipe = replace(
        recipe,
        checkpoints=replace(recipe.checkpoints, save_every=100, every_epoch=True),
        validation=replace(recipe.validation, validate_every=0),
    )
    train(recipe, data, tmp_path)
    assert not logged(tmp_path, "validation")
    assert sum(one.is_scheduled for one in list_checkpoints(RunFolder(tmp_path))) >= 2


# --------------------------------------------------------------------------------------- command


def train_command(data: Path, run: Path, *arguments: object) -> tuple[int, str]:
    done = nmtkit_in_text("train", data, "--out", run, "--device", "cpu", *arguments)
    return done.returncode, done.stderr


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_the_command_takes_the_shape_from_the_model(
    devices: int, data: Path, tmp_path: Path
) -> None:
    more = ("--dropout", 0.4, "--devices", devices)
    settings = SETTINGS.split()
    assert train_command(data, tmp_path / "one", *settings, "--max-updates", 3)[0] == 0
    origin = ("--from", tmp_path / "one", "--preset", "fine-tune", "--max-epochs", 2)
    code, talk = train_command(data, tmp_path / "two", *origin, *more)
    assert code == 0, talk
    assert f"weights from {tmp_path / 'one' / 'checkpoints' / '00000003'}" in talk
    assert "event=validation update=0/" in talk
    recipe = RunFolder(tmp_path / "two").read_recipe()
    shape = RunFolder(tmp_path / "one").read_recipe().model
    assert recipe.model == replace(shape, dropout=0.4)
    assert recipe.training.schedule == "constant"
    shutil.rmtree(tmp_path / "one")
    code, talk = train_command(data, tmp_path / "two", *origin[:-1], 3, *more)
    assert (code, "continuing after update" in talk) == (0, True), talk


@pytest.mark.parametrize(
    ("arguments", "code", "keys"),
    [
        (("--from", "{data}"), 4, "data 'nmtkit-dataset' model; model"),
        (("--from", "nowhere"), 4, "nowhere folder; path"),
        (("--from", "{parent}", "--preset", "base"), 2, "encoder_layers 6 1; settings preset"),
        (("--from", "{parent}", "--model-size", "32"), 2, "model_size 32 16; settings preset"),
        (("--update-vocabulary",), 2, "--update-vocabulary --from; out"),
    ],
)
def test_a_wrong_start_is_refused_in_one_line(
    arguments: tuple[str, ...],
    code: int,
    keys: str,
    data: Path,
    parent: Path,
    tmp_path: Path,
) -> None:
    given = [one.format(data=data, parent=parent) for one in arguments]
    found, talk = train_command(data, tmp_path / "run", *given)
    assert (found, talk.count("error:")) == (code, 1), talk
    check_errors(talk, code, keys)


# -------------------------------------------------------------------------------------- freezing


def test_the_command_freezes_and_says_so(data: Path, tmp_path: Path) -> None:
    flags = ("--freeze", "encoder.1", "--freeze", "embeddings", "--max-updates", "2")
    command = ("train", data, "--out", tmp_path / "run", *SETTINGS.split(), *flags)
    done = nmtkit_in_text(*command)
    assert done.returncode == 0, done.stderr
    assert "; tied, so frozen too: projection.weight" in done.stderr
    assert RunFolder(tmp_path / "run").read_recipe().training.freeze == ("encoder.1", "embeddings")
    done = nmtkit_in_text(*command, "--freeze", "decoder.1")
    refused(done, 2, "freeze 'encoder.1' 'embeddings' 'decoder.1'")
    done = nmtkit_in_text(*command[:-6], "--freeze", "encoder.2")
    assert done.stderr.count("error:") == 1
    refused(done, 2, "freeze encoder.2 1; encoder.1")
