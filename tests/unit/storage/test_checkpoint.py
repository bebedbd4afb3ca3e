"""Which checkpoints a run keeps, which it deletes, and what training finds in them again."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.errors import DamagedError, DivergedError, LostFolderError, ResourceError
from nmtkit.storage.checkpoint import (
    NUM_WITH_STATE,
    Snapshot,
    list_checkpoints,
    newest_resumable,
    prune,
    write_checkpoint,
)
from nmtkit.storage.durable import remove
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.micro_batches import MicroBatchSchedule
from tests.folders import contents, refusing
from tests.messages import refuses
from tests.snapshots import PROVENANCE, tiny_model_folder, tiny_run, tiny_snapshot, tiny_tensors
from tests.training import assert_same_tensors


def checkpoint_names(run: RunFolder) -> list[str]:
    return sorted(path.name for path in (run.path / "checkpoints").iterdir())


def state_of(run: RunFolder, update: int) -> Path:
    return run.path / "checkpoints" / f"{update:08d}.state"


def flip(path: Path) -> None:
    """Change a file without changing its size."""
    content = path.read_bytes()
    path.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))


# ----------------------------------------------------------------------------- writing


def test_the_checkpoint_saved_last_is_resumed_from_as_it_was(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 4, 5)
    resumable = newest_resumable(run, pytest.fail)
    assert resumable is not None
    assert resumable.path == run.last() == run.model_dir(5)
    expected = tiny_snapshot(5, is_scheduled=True)
    assert resumable.update == 5
    assert resumable.recipe == expected.recipe
    assert resumable.provenance == PROVENANCE
    assert resumable.state_values == expected.state_values
    assert_same_tensors(resumable.model, expected.model)
    assert_same_tensors(resumable.state_tensors, expected.state_tensors)


def test_checkpoints_are_in_the_order_of_updates_whenever_they_were_written(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    updates = (100_000_000, 20, 3, 99_999_999)
    for update in updates:
        write_checkpoint(run, tiny_snapshot(update, is_scheduled=update != 3))
    os.utime(run.model_dir(3), (2e9, 2e9))
    checkpoints = list_checkpoints(run)
    assert [one.update for one in checkpoints] == sorted(updates)
    assert [one.path for one in checkpoints] == [
        run.model_dir(update) for update in sorted(updates)
    ]
    assert [one.is_scheduled for one in checkpoints] == [False, True, True, True]


def test_a_whole_checkpoint_is_not_written_again(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    write_checkpoint(run, tiny_snapshot(2, is_scheduled=True))
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}


def other_model(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, model=tiny_tensors(3))


def other_state(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, state_tensors={"moment": torch.zeros(2)})


@pytest.mark.parametrize("change", [other_model, other_state])
def test_another_checkpoint_of_the_same_update_is_an_error_and_stays(
    change: Callable[[Snapshot], Snapshot], tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    before = contents(run.path)
    snapshot = change(tiny_snapshot(2, is_scheduled=True))
    with refuses(DamagedError, f"{run.model_dir(2)} update 2; 00000002.state"):
        write_checkpoint(run, snapshot)
    assert contents(run.path) == before


def write(run: RunFolder) -> None:
    write_checkpoint(run, tiny_snapshot(5, is_scheduled=True))


WRITERS: dict[str, Callable[[RunFolder], object]] = {
    "a checkpoint": write,
    "pruning": lambda run: prune(run, 1, [], pytest.fail),
    "the recipe": lambda run: run.write_recipe(tiny_snapshot(1, is_scheduled=True).recipe),
    "last": lambda run: run.point_last(1),
    "best": lambda run: run.point_best([1]),
    "no best": lambda run: run.point_best([]),
    "micro-batches": lambda run: MicroBatchSchedule(run, 1, []).increase(2, 4, is_writer=True),
}


@pytest.mark.parametrize("action", WRITERS.values(), ids=WRITERS)
def test_nothing_is_written_to_a_run_that_replaced_the_locked_one(
    action: Callable[[RunFolder], object], tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4)
    run.point_best([3])
    shutil.copytree(run.path, tmp_path / "other")
    with run.locked():
        run.path.rename(tmp_path / "renamed")
        (tmp_path / "other").rename(run.path)
        before = contents(run.path)
        with refuses(LostFolderError, f"{run.path} .lock; path command"):
            action(run)
    assert contents(run.path) == before
    action(run)  # it would have changed something
    assert contents(run.path) != before


@pytest.mark.parametrize("part", ["model", "state"])
def test_a_damaged_checkpoint_is_written_again_with_both_parts(part: str, tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1)
    name = {
        "model": "00000001/model.safetensors",
        "state": "00000001.state/state.safetensors",
    }[part]
    flip(run.path / "checkpoints" / name)
    write_checkpoint(run, tiny_snapshot(1, is_scheduled=True))
    resumable = newest_resumable(run, pytest.fail)
    assert resumable is not None
    assert torch.equal(resumable.model["weight"], tiny_tensors(1)["weight"])


def test_a_state_of_a_killed_save_is_not_mixed_with_a_model_saved_later(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1)
    remove(run.model_dir(1))
    snapshot = tiny_snapshot(1, is_scheduled=True)
    write_checkpoint(run, replace(snapshot, state_tensors={"moment": torch.zeros(2)}))
    resumable = newest_resumable(run, pytest.fail)
    assert resumable is not None
    assert torch.equal(resumable.state_tensors["moment"], torch.zeros(2))


def test_a_diverged_model_is_not_saved_and_the_last_one_stays(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1)
    snapshot = tiny_snapshot(2, is_scheduled=True)
    broken = replace(snapshot, model={"weight": torch.tensor(float("nan"))})
    with refuses(DivergedError, "00000002 weight; --out --learning-rate-scale --clip-norm"):
        write_checkpoint(run, broken)
    assert run.last() == run.model_dir(1)
    assert checkpoint_names(run) == ["00000001", "00000001.state"]


# ------------------------------------------------------------------------------------- resuming


DAMAGE: dict[str, Callable[[RunFolder], object]] = {
    "a flipped bit of the model": lambda run: flip(run.model_dir(2) / "model.safetensors"),
    "a flipped bit of the codec": lambda run: flip(run.model_dir(2) / "codec" / "codec.json"),
    "a flipped bit of the state": lambda run: flip(state_of(run, 2) / "state.safetensors"),
    "a flipped bit of the values": lambda run: flip(state_of(run, 2) / "state.json"),
    "no manifest": lambda run: (run.model_dir(2) / "manifest.json").unlink(),
    "no state": lambda run: state_of(run, 2).rename(run.path / "elsewhere"),
    "another name": lambda run: run.model_dir(2).rename(run.model_dir(3)),
}


@pytest.mark.parametrize("harm", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(
    harm: Callable[[RunFolder], object], tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    harm(run)
    warnings: list[str] = []
    resumable = newest_resumable(run, warnings.append)
    assert resumable is not None
    assert resumable.update == 1
    (warning,) = warnings
    assert warning.startswith(
        ("checkpoint 00000002 is skipped: ", "checkpoint 00000003 is skipped")
    )


def test_a_run_without_any_whole_checkpoint_is_damaged(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    for update in (1, 2):
        flip(run.model_dir(update) / "model.safetensors")
    warnings: list[str] = []
    with refuses(DamagedError, "run; --out"):
        newest_resumable(run, warnings.append)
    assert len(warnings) == 2


def test_a_folder_that_is_no_checkpoint_of_the_run_is_named(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1)
    tiny_model_folder(run.model_dir(2), 7, tiny_tensors(2))
    with refuses(DamagedError, "00000002 update 2"):
        list_checkpoints(run)


# ------------------------------------------------------------------------------------ retention


def saved_run(path: Path, scheduled: tuple[int, ...], by_time: tuple[int, ...]) -> RunFolder:
    run = RunFolder.create_or_open(path)
    for update in sorted(scheduled + by_time):
        write_checkpoint(run, tiny_snapshot(update, is_scheduled=update in scheduled))
    return run


@pytest.mark.parametrize(
    ("keep", "best", "kept"),
    [
        (1, None, [4, 5, 6]),
        (2, None, [2, 4, 5, 6]),
        (2, 1, [1, 2, 4, 5, 6]),
        (3, 5, [1, 2, 4, 5, 6]),
        (9, None, [1, 2, 4, 5, 6]),
    ],
)
def test_pruning_keeps_what_averaging_best_and_resuming_need(
    keep: int, best: int | None, kept: list[int], tmp_path: Path
) -> None:
    run = saved_run(tmp_path / "run", scheduled=(1, 2, 4), by_time=(3, 5, 6))
    if best is not None:
        run.point_best([best])
    prune(run, keep, (), pytest.fail)
    assert [one.update for one in list_checkpoints(run)] == kept
    states = [name for name in checkpoint_names(run) if name.endswith(".state")]
    assert states == ["00000005.state", "00000006.state"]
    assert len(states) == NUM_WITH_STATE


def test_pruning_keeps_what_last_names(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4)
    (tmp_path / "run" / "last").write_bytes(b"00000001\n")
    prune(run, 1, (), pytest.fail)
    assert [one.update for one in list_checkpoints(run)] == [1, 3, 4]
    assert state_of(run, 1).exists()


def test_training_that_went_on_from_before_damaged_checkpoints_can_go_on_again(
    tmp_path: Path,
) -> None:
    run = tiny_run(tmp_path / "run", 1, 8, 9)
    for update in (8, 9):
        flip(run.model_dir(update) / "model.safetensors")
    write_checkpoint(run, tiny_snapshot(2, is_scheduled=True))
    prune(run, 1, (), pytest.fail)
    resumable = newest_resumable(run, lambda _: None)
    assert resumable is not None
    assert resumable.update == 2


def test_pruning_removes_what_killed_saves_left(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2)
    state_of(run, 2).rename(state_of(run, 7))
    (run.path / "checkpoints" / ".00000009.nmtkit-partial").mkdir()
    (run.path / "checkpoints" / ".00000009.nmtkit-lock").write_text("1")
    prune(run, 1, (), pytest.fail)
    assert checkpoint_names(run) == ["00000001", "00000001.state", "00000002"]


def test_what_cannot_be_deleted_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3)
    (run.path / "checkpoints" / ".00000009.nmtkit-lock").write_text("1")
    warnings: list[str] = []
    for name in ("rename", "unlink"):
        monkeypatch.setattr(os, name, refusing(errno.EACCES))
    prune(run, 1, (), warnings.append)
    assert [text.partition(": ")[0] for text in warnings] == [
        "not deleted, although no longer needed"
    ] * 3  # the model and the state of update 1, and the leftover


def test_pruning_keeps_the_best_checkpoints(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4, 5)
    run.point_best([2])
    prune(run, 1, [3, 1, 99], pytest.fail)
    assert [one.update for one in list_checkpoints(run)] == [1, 2, 3, 4, 5]
    prune(run, 1, [2], pytest.fail)
    assert [one.update for one in list_checkpoints(run)] == [2, 4, 5]


def test_pruning_touches_nothing_that_is_not_a_checkpoint_s(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4)
    checkpoints = tmp_path / "run" / "checkpoints"
    (checkpoints / "mine.state").write_text("kept", encoding="utf-8")
    (checkpoints / "00000009.state").write_text("a file", encoding="utf-8")
    (checkpoints / "00000001.backup.state").mkdir()
    (checkpoints / "00000001" / "manifest.json").write_text("damaged", encoding="utf-8")
    prune(run, 1, (), pytest.fail)
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


# ---------------------------------------------------------------------------------------- files


def test_the_state_is_plain_json_and_says_its_update(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", 3)
    values = json.loads((state_of(run, 3) / "state.json").read_bytes())
    manifest = json.loads((state_of(run, 3) / "manifest.json").read_bytes())
    assert values == tiny_snapshot(3, is_scheduled=True).state_values
    assert manifest["format"] == "nmtkit-training-state"
    assert (manifest["version"], manifest["update"]) == (2, 3)


def test_a_full_disk_keeps_the_checkpoints_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(tmp_path / "run", 1)
    names = checkpoint_names(run)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refusing(errno.ENOSPC))
        with refuses(ResourceError, "00000002.state"):
            write_checkpoint(run, tiny_snapshot(2, is_scheduled=True))
    assert checkpoint_names(run) == names
    write_checkpoint(run, tiny_snapshot(2, is_scheduled=True))
    assert run.last() == run.model_dir(2)
