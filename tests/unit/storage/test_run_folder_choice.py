"""What is a run's folder, and what in it is another's."""

from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.errors import ConfigError
from nmtkit.storage.run_folder import RunFolder, is_run
from tests.snapshots import tiny_run


def test_a_folder_of_another_program_is_not_taken_for_a_run(tmp_path: Path) -> None:
    checkpoints = tmp_path / "other" / "checkpoints"
    checkpoints.mkdir(parents=True)
    write_file(tmp_path / "other" / "config.toml", "name = 'mine'\n")
    for names in ([], ["last.ckpt"], ["00000010"], ["opt.state"]):
        for name in names:
            (checkpoints / name).mkdir()
        assert not is_run(tmp_path / "other")
        with pytest.raises(ConfigError, match=r"other: is not the folder of a run, and holds 'c"):
            RunFolder.create_or_open(tmp_path / "other")
    assert (tmp_path / "other" / "config.toml").read_text("utf-8") == "name = 'mine'\n"


def test_a_run_that_was_killed_before_its_first_checkpoint_is_one(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    assert is_run(run.path)
    run.write_recipe(TrainRecipe())
    (tmp_path / "run" / "metrics.jsonl").touch()
    assert is_run(run.path)
    RunFolder.create_or_open(tmp_path / "run")


def test_pruning_touches_nothing_that_is_not_a_checkpoint_s(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4)
    checkpoints = tmp_path / "run" / "checkpoints"
    write_file(checkpoints / "mine.state", "kept")
    write_file(checkpoints / "00000009.state", "a file")
    (checkpoints / "00000001.backup.state").mkdir()
    write_file(checkpoints / "00000001" / "manifest.json", "damaged")
    run.prune(1, (), pytest.fail)
    assert {path.name for path in checkpoints.iterdir()} == {
        "mine.state",
        "00000009.state",
        "00000001.backup.state",
        "00000001",
        "00000001.state",
        "00000003",
        "00000003.state",
        "00000004",
        "00000004.state",
    }


def write_file(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_pruning_keeps_the_best_ones_that_it_is_told(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4, 5)
    run.point_best([2])
    run.prune(1, [3, 1, 99], pytest.fail)
    assert [one.update for one in run.checkpoints()] == [1, 2, 3, 4, 5]
    run.prune(1, [2], pytest.fail)
    assert [one.update for one in run.checkpoints()] == [2, 4, 5]
