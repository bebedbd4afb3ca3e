"""Writers under test: what stood before, what they do, and what may be seen of it at any moment."""

import gzip
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest
import torch

from nmtkit.averaging import average
from nmtkit.errors import ConfigError
from nmtkit.storage.checkpoint import list_checkpoints, newest_resumable, prune, write_checkpoint
from nmtkit.storage.durable import replace_file
from nmtkit.storage.growing_file import growing_file
from nmtkit.storage.model_description import describe_model
from nmtkit.storage.run_folder import RunFolder, is_run
from tests.folders import read_folder, write_folder
from tests.snapshots import read_tensors, tiny_run, tiny_snapshot, tiny_tensors


@dataclass(frozen=True)
class Scenario:
    """A writer under test.

    Attributes:
        prepare: makes the state before, in an empty folder.
        act: what is ended or failed; done again, it reaches the state after.
        check: fails unless what can be seen is whole, and old or new.
    """

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]
    check: Callable[[Path], object]


# ------------------------------------------------------------------------------------- folders


def write_folder_once(root: Path) -> None:
    """Write what is not there yet, as a user who tries the same command again."""
    with suppress(ConfigError):
        write_folder(root / "deep" / "made", "new")


def check_new_folder_or_none(root: Path) -> None:
    made = root / "deep" / "made"
    assert not made.exists() or read_folder(made) == "new"


def check_old_or_new_folder(root: Path) -> None:
    assert read_folder(root / "made") in ("old", "new")


# ------------------------------------------------------------------------------------ pointers


def check_old_or_new_file(root: Path) -> None:
    assert (root / "pointer").read_bytes() in (b"old\n", b"new\n")


# ------------------------------------------------------------------------------- files that grow

GROWN = [["one"], ["two"], ["three"]]


def ends_of_lines(lines: Iterable[bytes]) -> dict[int, int]:
    return dict(enumerate(accumulate(map(len, lines)), 1))


def grow(root: Path, name: str = "grown", *, overwrite: bool = False) -> None:
    """Write a file line by line, continued where an earlier call ended, unless it is there."""
    path = root / "deep" / name
    with suppress(ConfigError), growing_file(path, overwrite=overwrite) as file:
        if not file.is_complete:
            num_done = file.resume(ends_of_lines)
            file.begin({"text": "three lines"})
            for line in GROWN[num_done:]:
                file.append(line)
        file.publish()


def check_old_or_grown_file(root: Path, old: bytes | None, name: str = "grown") -> None:
    path = root / "deep" / name
    content = path.read_bytes() if path.exists() else None
    if content and name.endswith(".gz"):
        content = gzip.decompress(content)
    assert content in (old, b"one\ntwo\nthree\n")


def prepare_old(root: Path) -> None:
    (root / "deep").mkdir()
    replace_file(root / "deep" / "grown", b"old\n")


# ---------------------------------------------------------------------------------------- runs


def save_first(root: Path) -> None:
    run = RunFolder.create_or_open(root / "deep" / "run")
    newest_resumable(run, pytest.fail)
    write_checkpoint(run, tiny_snapshot(1, is_scheduled=True))
    prune(run, 1, (), lambda _: None)


def check_one_checkpoint_or_none(root: Path) -> None:
    path = root / "deep" / "run"
    resumable = newest_resumable(RunFolder(path), pytest.fail) if is_run(path) else None
    if resumable is not None:
        assert resumable.update == 1
        assert_tensors(resumable.path, 1)


def prepare_run(root: Path) -> None:
    run = tiny_run(root / "run", 1, 2, 3)
    run.point_best([1])
    prune(run, 1, (), pytest.fail)


def save_and_prune(root: Path) -> None:
    run = RunFolder.create_or_open(root / "run")
    resumable = newest_resumable(run, pytest.fail)
    assert resumable is not None
    run.point_last(resumable.update)
    write_checkpoint(run, tiny_snapshot(4, is_scheduled=True))
    run.point_best([4])
    prune(run, 1, (), lambda _: None)


def check_run(root: Path) -> None:
    run = RunFolder(root / "run")
    best, last = run.best(), run.last()
    assert best is not None
    assert best.name in ("00000001", "00000004")
    assert last is not None
    assert last.name in ("00000003", "00000004")
    for checkpoint in list_checkpoints(run):
        assert_tensors(checkpoint.path, checkpoint.update)
    resumable = newest_resumable(run, pytest.fail)
    assert resumable is not None
    assert resumable.update in (3, 4)
    assert resumable.state_values["update"] == resumable.update
    assert torch.equal(resumable.state_tensors["moment"], torch.full((4,), resumable.update * 1.0))


def assert_tensors(folder: Path, update: float) -> None:
    """Check that parameters are those of an update, or the mean of updates with this mean."""
    zeroth, first = tiny_tensors(0), tiny_tensors(1)
    for name, tensor in read_tensors(folder).items():
        assert torch.allclose(tensor, torch.lerp(zeroth[name], first[name], update)), name


# ----------------------------------------------------------------------------------- averaging


def average_updates(root: Path, *updates: int) -> None:
    folders = [root / "run" / "checkpoints" / f"{update:08d}" for update in updates]
    average(folders, root / "mean", overwrite=True, different_runs=False)


def prepare_average(root: Path) -> None:
    tiny_run(root / "run", 1, 2, 3)
    average_updates(root, 1, 2)


def check_old_or_new_average(root: Path) -> None:
    update = len(describe_model(root / "mean").manifest["sources"]) / 2 + 0.5
    assert update in (1.5, 2)
    assert_tensors(root / "mean", update)


SCENARIOS = {
    "a new folder": Scenario(lambda _: None, write_folder_once, check_new_folder_or_none),
    "a folder that replaces another": Scenario(
        lambda root: write_folder(root / "made", "old"),
        lambda root: write_folder(root / "made", "new", overwrite=True),
        check_old_or_new_folder,
    ),
    "a pointer": Scenario(
        lambda root: replace_file(root / "pointer", b"old\n"),
        lambda root: replace_file(root / "pointer", b"new\n"),
        check_old_or_new_file,
    ),
    "a file that grows": Scenario(
        lambda _: None, grow, lambda root: check_old_or_grown_file(root, None)
    ),
    "a compressed file that grows": Scenario(
        lambda _: None,
        lambda root: grow(root, "grown.gz"),
        lambda root: check_old_or_grown_file(root, None, "grown.gz"),
    ),
    "a file that grows and replaces another": Scenario(
        prepare_old,
        lambda root: grow(root, overwrite=True),
        lambda root: check_old_or_grown_file(root, b"old\n"),
    ),
    "the first checkpoint of a run": Scenario(
        lambda _: None, save_first, check_one_checkpoint_or_none
    ),
    "a checkpoint, saved, pointed to, and others pruned": Scenario(
        prepare_run, save_and_prune, check_run
    ),
    "an average that replaces another": Scenario(
        prepare_average, lambda root: average_updates(root, 1, 2, 3), check_old_or_new_average
    ),
}


def everything_in(root: Path) -> list[str]:
    """Return the path of every file and folder, hidden ones too."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
