"""What may happen to the folder of a run between two sessions, or during one."""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.errors import ConfigError, DamagedError, LostFolderError, ResourceError, StoppedError
from nmtkit.storage.durable import locked
from nmtkit.storage.model_folder import load_model
from nmtkit.training.run import train
from tests.faults.harness import held_by_another_process
from tests.faults.moments import in_update, send
from tests.faults.results import Result, result_of
from tests.folders import PLANTED, contents, planted, refusing
from tests.messages import refuses
from tests.tiny import TRAIN_LINES, tiny_dataset, tiny_train_recipe

RECIPE = tiny_train_recipe(max_updates=5, dropout=0.1)


@pytest.fixture(scope="module")
def begun(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that stopped after update 3."""
    run = tmp_path_factory.mktemp("begun") / "run"
    with in_update(4, send(signal.SIGTERM)), refuses(StoppedError, "SIGTERM update 3"):
        train(RECIPE, data, run)
    return run


@pytest.fixture(scope="module")
def complete(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that nothing disturbed."""
    run = tmp_path_factory.mktemp("complete") / "run"
    train(RECIPE, data, run)
    return run


@pytest.fixture(scope="module")
def expected(complete: Path) -> Result:
    return result_of(complete)


# ---------------------------------------------------------------------------- between two sessions


def set_clock_back(run: Path) -> None:
    """Give every file the time of 1970, the newest checkpoint before the oldest."""
    for age, path in enumerate(sorted(run.rglob("*"))):
        os.utime(path, (1e6 - age, 1e6 - age))


def delete_pointers(run: Path) -> None:
    for name in ("last", "best"):
        (run / name).unlink(missing_ok=True)


def delete_newest(run: Path) -> None:
    shutil.rmtree(run / "checkpoints" / "00000003")


def delete_newest_state(run: Path) -> None:
    shutil.rmtree(run / "checkpoints" / "00000003.state")


def tear_newest_weights(run: Path) -> None:
    path = run / "checkpoints" / "00000003" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def tear_log(run: Path) -> None:
    with (run / "metrics.jsonl").open("ab") as stream:
        stream.write(b'{"event": "trai')


def add_notes(run: Path) -> None:
    for name in ("notes.txt", "checkpoints/notes.txt", "checkpoints/00000003/notes.txt"):
        (run / name).write_text("mine")


@pytest.mark.parametrize(
    "change",
    [
        set_clock_back,
        delete_pointers,
        delete_newest,
        delete_newest_state,
        tear_newest_weights,
        tear_log,
        add_notes,
    ],
)
def test_a_changed_folder_resumes_as_if_unchanged(
    change: Callable[[Path], None], begun: Path, data: Path, tmp_path: Path, expected: Result
) -> None:
    run = tmp_path / "run"
    shutil.copytree(begun, run)
    change(run)
    train(RECIPE, data, run)
    assert result_of(run) == expected


def test_a_complete_run_stays_unchanged(complete: Path, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(complete, run)
    before = contents(run)
    train(RECIPE, data, run)
    assert contents(run) == before


# ------------------------------------------------------------------------------------------- links


def test_data_and_run_may_be_reached_through_links(
    begun: Path, data: Path, tmp_path: Path, expected: Result
) -> None:
    shutil.copytree(begun, tmp_path / "scratch")
    (tmp_path / "run").symlink_to(tmp_path / "scratch")
    (tmp_path / "data").symlink_to(data)
    train(RECIPE, tmp_path / "data", tmp_path / "run")
    assert result_of(tmp_path / "scratch") == expected
    assert (tmp_path / "run").is_symlink()
    load_model(tmp_path / "run", torch.device("cpu"))


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", ["config.toml", "last", "best"])
def test_a_run_writes_nothing_through_a_hidden_name_that_others_made(
    name: str, kind: str, begun: Path, data: Path, tmp_path: Path, expected: Result
) -> None:
    run = tmp_path / "run"
    shutil.copytree(begun, run)
    with planted(kind, run / f".{name}.nmtkit-partial"):
        train(RECIPE, data, run)
    assert result_of(run) == expected


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", [".lock", "metrics.jsonl"])
def test_a_lock_or_log_that_others_made_ends_a_run_before_its_first_update(
    name: str, kind: str, begun: Path, data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(begun, run)
    (run / name).unlink(missing_ok=True)
    with (
        planted(kind, run / name),
        refuses(ResourceError, run / name),
    ):
        train(RECIPE, data, run)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == sorted(
        path.name for path in (begun / "checkpoints").iterdir()
    )


# ------------------------------------------------------------------------------------------- names


ODD_NAMES = {
    "a line end": "first\nsecond",
    "signs with a meaning": "*[x]?{y}~$HOME;#",
    "an option": "--out",
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES)
def test_folders_may_have_any_name(
    name: str, begun: Path, data: Path, tmp_path: Path, expected: Result
) -> None:
    odd = tmp_path / name
    shutil.copytree(data, odd / "data")
    shutil.copytree(begun, odd / "run")
    train(RECIPE, odd / "data", odd / "run")
    assert result_of(odd / "run") == expected
    load_model(odd / "run", torch.device("cpu"))


def test_a_folder_whose_name_is_no_utf8_is_refused_before_any_update(
    begun: Path, data: Path, tmp_path: Path
) -> None:
    """The library that writes weights takes no such path."""
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(begun, odd / "run")
    for run in (odd / "run", odd / "new run"):
        with refuses(ConfigError, "path UTF-8"):
            train(RECIPE, data, run)
    with refuses(ConfigError, "model.safetensors UTF-8"):
        load_model(odd / "run", torch.device("cpu"))
    assert not (odd / "new run").exists()


# ------------------------------------------------------------------------------------ two trainers


def test_a_second_trainer_changes_nothing_and_may_follow_when_the_first_is_killed(
    begun: Path, data: Path, tmp_path: Path, expected: Result
) -> None:
    run = tmp_path / "run"
    shutil.copytree(begun, run)
    with held_by_another_process(locked(run)) as process:
        before = contents(run)
        with refuses(ConfigError, f"run process {process}"):
            train(RECIPE, data, run)
        assert contents(run) == before
    train(RECIPE, data, run)
    assert result_of(run) == expected


def renamed(run: Path) -> None:
    run.rename(run.with_name("renamed"))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("log_every", [1, 100])
@pytest.mark.parametrize("lose", [renamed, shutil.rmtree])
@pytest.mark.parametrize("is_followed", [False, True])
def test_training_ends_when_its_folder_is_gone_and_another_run_at_its_path_is_unchanged(
    is_followed: bool, lose: Callable[[Path], None], log_every: int, data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    recipe = replace(
        RECIPE,
        logging=replace(RECIPE.logging, log_every=log_every),
        checkpoints=replace(RECIPE.checkpoints, save_every=100),
        validation=replace(RECIPE.validation, validate_every=0),
    )

    def follow() -> None:
        lose(run)
        if is_followed:
            train(replace(recipe, seed=replace(recipe.seed, seed=2)), data, run)
            found.update(contents(run))

    found: dict[str, bytes] = {}
    with in_update(4, follow), refuses(LostFolderError, f"{run} .lock; path command"):
        train(recipe, data, run)
    assert (contents(run) if run.exists() else {}) == found


@pytest.mark.parametrize("kind", ["unmounted", "read-only"])
def test_a_run_on_a_disk_that_is_gone_for_good_ends_with_its_reason(
    kind: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails while training runs; without a lock to look at, nothing is replaced."""
    number = {"unmounted": errno.ENOTCONN, "read-only": errno.EROFS}[kind]
    names = {"unmounted": ("stat", "open", "mkdir"), "read-only": ("open", "mkdir")}[kind]

    def fail() -> None:
        for name in names:
            monkeypatch.setattr(os, name, refusing(number))

    recipe = replace(RECIPE, checkpoints=replace(RECIPE.checkpoints, save_every=100))
    with in_update(4, fail), refuses(ResourceError, f"{tmp_path}/run {os.strerror(number)}"):
        train(recipe, data, tmp_path / "run")


# --------------------------------------------------------------------------------------- its data


def swapped() -> tuple[str, ...]:
    return (TRAIN_LINES[1], TRAIN_LINES[0], *TRAIN_LINES[2:])


def permuted() -> tuple[str, ...]:
    """Return the text with two words that stand for each other: their ids are exchanged too."""
    return tuple(line.translate(str.maketrans("ab", "ba")) for line in TRAIN_LINES)


@pytest.mark.parametrize("lines", [swapped(), (*TRAIN_LINES, "a"), TRAIN_LINES[:-1], permuted()])
def test_a_run_is_not_continued_with_other_data(
    lines: tuple[str, ...], begun: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(begun, run)
    with refuses(DamagedError, f"{run}; --out"):
        train(RECIPE, tiny_dataset(tmp_path, lines), run)


def test_a_run_is_continued_with_the_same_data_made_again(
    begun: Path, tmp_path: Path, expected: Result
) -> None:
    run = tmp_path / "run"
    shutil.copytree(begun, run)
    train(RECIPE, tiny_dataset(tmp_path), run)
    assert result_of(run) == expected
