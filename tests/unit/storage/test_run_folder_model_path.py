"""Which model a run, its pointers and its checkpoints stand for."""

from dataclasses import replace
from pathlib import Path

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import DamagedError
from nmtkit.storage.checkpoint import write_checkpoint
from nmtkit.storage.model_folder import load_model
from nmtkit.storage.run_folder import RunFolder, find_model
from tests.messages import refuses
from tests.snapshots import read_tensors, tiny_run, tiny_snapshot, tiny_tensors
from tests.tiny import tiny_codec, tiny_model

CPU = torch.device("cpu")


def real_run(path: Path) -> RunFolder:
    """Make a run of two checkpoints of a real model, of which the first is the best."""
    run = RunFolder.create_or_open(path)
    model = tiny_model(tiny_codec())
    for update in (1, 2):
        snapshot = tiny_snapshot(update, is_scheduled=True)
        recipe = TrainRecipe(model=model.config)
        write_checkpoint(run, replace(snapshot, model=model.state_dict(), recipe=recipe))
    run.point_best([1])
    return run


def test_a_run_and_its_pointers_stand_for_models(tmp_path: Path) -> None:
    run = real_run(tmp_path / "run")
    meanings = {
        run.path: 1,
        run.path / "best": 1,
        run.path / "last": 2,
        run.path / "checkpoints" / "00000002": 2,
    }
    for path, update in meanings.items():
        assert load_model(path, CPU).manifest["update"] == update, path
        assert find_model(path) == run.path / "checkpoints" / f"{update:08d}", path


def test_a_run_without_a_best_checkpoint_stands_for_its_last(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    assert find_model(run.path) == run.path / "checkpoints" / "00000002"
    assert torch.equal(read_tensors(run.path)["weight"], tiny_tensors(2)["weight"])


def test_a_run_without_checkpoints_is_an_error(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    with refuses(DamagedError, "run; nmtkit train"):
        load_model(run.path, CPU)


def test_other_files_named_last_are_no_pointers(tmp_path: Path) -> None:
    (tmp_path / "last").write_text("00000001\n")
    with refuses(DamagedError, "last"):
        load_model(tmp_path / "last", CPU)
