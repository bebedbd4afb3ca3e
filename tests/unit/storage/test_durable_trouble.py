"""Durable writing when others write too, when a writer was killed, when disks refuse."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, ResourceError
from nmtkit.storage.durable import (
    disk_errors,
    locked,
    make_folder,
    new_folder,
    read_manifest,
    remove,
    remove_leftovers,
    replace_file,
    verify_files,
)
from tests.faults.harness import Fault, held_by_another_process, run_in_child
from tests.folders import FORMAT, names_in, read_folder, refusing, write_folder


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


# -------------------------------------------------------------------------------- other writers


def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    def write_and_die() -> None:
        with new_folder(tmp_path / "made", FORMAT, 1, overwrite=False) as staged:
            (staged.path / "one").write_text("1")
            os.kill(os.getpid(), 9)

    assert run_in_child(write_and_die, Fault("count", 0)).is_killed
    assert names_in(tmp_path) != []
    write_folder(tmp_path / "made", "new")
    assert names_in(tmp_path) == ["made"]


def test_a_folder_that_is_being_written_is_not_touched_by_a_second_writer(tmp_path: Path) -> None:
    final = tmp_path / "made"
    with held_by_another_process(new_folder(final, FORMAT, 1, overwrite=False)) as process:
        names = names_in(tmp_path)
        with pytest.raises(ConfigError, match=f"made: in use by process {process} on .*; wait unt"):
            write_folder(final, "new")
        assert names_in(tmp_path) == names
    assert read_folder(write_folder(final, "new")) == "new"


def test_a_lock_keeps_others_out_until_its_holder_ends_or_is_killed(tmp_path: Path) -> None:
    with (
        held_by_another_process(locked(tmp_path)) as process,
        pytest.raises(ConfigError, match=f"in use by process {process} on "),
        locked(tmp_path),
    ):
        pytest.fail("two hold the lock")
    with (
        locked(tmp_path),
        pytest.raises(ConfigError, match=f"in use by process {os.getpid()} on "),
        locked(tmp_path),
    ):
        pytest.fail("two hold the lock")
    with locked(tmp_path):
        pass
    assert names_in(tmp_path) == []


def test_a_lock_that_its_holder_deletes_while_one_waits_to_take_it_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_open, opened = os.open, []

    def open_then_lose(path: Path, flags: int, mode: int) -> int:
        opened.append(path)
        descriptor = whole_open(path, flags, mode)
        if len(opened) == 1:
            path.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_then_lose)
    with locked(tmp_path):
        assert len(opened) == 2
        assert names_in(tmp_path) == [".lock"]


# -------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "No space left on device; free some space"),
        (errno.EDQUOT, "quota exceeded; free some space"),
        (errno.EFBIG, "File too large; choose a place where files may grow"),
        (errno.EROFS, "Read-only file system; choose a place that can be written to"),
        (errno.EACCES, "Permission denied; get the permission"),
        (errno.EPERM, "Operation not permitted; get the permission"),
        (errno.EIO, "the disk fails"),
        (errno.ENOLCK, "file system that has file locks"),
        (errno.ENOSYS, "file system that has file locks"),
    ],
)
def test_a_disk_that_refuses_is_a_resource_error_that_names_the_path(
    number: int, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_more() -> None:
        with new_folder(tmp_path / "made", FORMAT, 1, overwrite=False):
            refusing(number)()

    with pytest.raises(ResourceError, match=f"made: .*{advice}"):
        write_more()
    assert names_in(tmp_path) == []
    monkeypatch.setattr(os, "mkdir", refusing(number))
    with pytest.raises(ResourceError, match=f"made: .*{advice}"):
        write_folder(tmp_path / "made", "new")
    assert names_in(tmp_path) == []


def test_a_place_that_makes_no_folders_is_a_wrong_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", refusing(errno.ENOENT))  # as /proc does
    with pytest.raises(
        ConfigError, match=r"made: No such file or directory.*; choose another path"
    ):
        write_folder(tmp_path / "made", "new")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("file/made", "File exists"),
        ("file/deeper/made", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("loop/made", "Too many levels of symbolic links|File exists"),
    ],
)
def test_an_impossible_path_is_a_wrong_option(path: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ConfigError, match=rf"^{tmp_path / path}: ({told}).*; choose another path"):
        write_folder(tmp_path / path, "new")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (None, ""),
        ("made", ""),
        ("made/inner", ""),
        (".made.nmtkit-partial/inner", ""),
        ("made too", " (made too)"),
        ("other/file", " (other/file)"),
    ],
)
def test_an_error_elsewhere_names_that_place_too(
    place: str | None, told: str, tmp_path: Path
) -> None:
    expected = f"made: No space left on device{told.replace('(', f'({tmp_path}/')}; free some"
    filename = place and str(tmp_path / place)
    with (
        pytest.raises(ResourceError, match=re.escape(expected)),
        disk_errors(tmp_path / "made"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), filename)


def test_other_errors_pass_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), disk_errors(tmp_path):
        (tmp_path / "missing").read_bytes()


@pytest.mark.parametrize(
    "action",
    [
        lambda path: replace_file(path / "file", b"new"),
        lambda path: make_folder(path / "a" / "b"),
        lambda path: remove(path / "made"),
        lambda path: remove_leftovers(path),
        lambda path: locked(path).__enter__(),
    ],
    ids=["replace_file", "make_folder", "remove", "remove_leftovers", "locked"],
)
def test_every_writer_tells_a_refusal_as_a_resource_error(
    action: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / ".x.nmtkit-partial").write_text("1")
    for name in ("open", "mkdir", "rename", "unlink"):
        monkeypatch.setattr(os, name, refusing(errno.EROFS))
    with pytest.raises(ResourceError, match=rf"^{tmp_path}.*: Read-only file system; choose"):
        action(tmp_path)


def test_reading_tells_a_refusal_as_a_resource_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_folder(tmp_path / "made", "new")
    manifest = read_manifest(made, FORMAT, 1)
    monkeypatch.setattr(Path, "open", refusing(errno.EIO))
    for action in (
        lambda: read_manifest(made, FORMAT, 1),
        lambda: verify_files(made, manifest),
    ):
        with pytest.raises(ResourceError, match="made: Input/output error; the disk fails"):
            action()
