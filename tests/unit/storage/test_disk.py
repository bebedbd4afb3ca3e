"""Locks, plain files and what disks refuse; test_durable_links.py has the links."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError, LostFolderError, ResourceError
from nmtkit.storage.disk import (
    check_is_file,
    disk_errors,
    held,
    is_at,
    make_folders,
    open_plain,
    read_file,
    remove_all,
    write_new,
)
from nmtkit.storage.durable import new_folder
from tests.folders import FORMAT, PLANTED, contents, names_in, planted, refusing, write_folder
from tests.messages import refuses


def test_a_lock_file_deleted_by_its_holder_is_created_again(
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
    with held(tmp_path / "lock", tmp_path):
        assert len(opened) == 2
        assert names_in(tmp_path) == ["lock"]


def rename_folder(folder: Path) -> None:
    folder.rename(folder.with_name("renamed"))


def replace_folder(folder: Path) -> None:
    rename_folder(folder)
    folder.mkdir()
    (folder / "lock").write_text("of another process")


def replace_by_file(folder: Path) -> None:
    rename_folder(folder)
    folder.write_text("lock")


@pytest.mark.parametrize("lose", [rename_folder, replace_folder, replace_by_file, shutil.rmtree])
def test_a_lock_is_lost_with_its_folder_and_another_at_its_path_stays(
    lose: Callable[[Path], object], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with held(folder / "lock", folder) as lock:
        lock.check()
        lose(folder)
        after = contents(tmp_path)
        with refuses(LostFolderError, f"{folder} lock; path command"):
            lock.check()
    assert contents(tmp_path) == after


def test_an_error_that_follows_from_a_lost_lock_is_not_reported(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with pytest.raises(FileNotFoundError), held(lock, tmp_path):
        (tmp_path / "other").unlink()

    def write_without_lock() -> None:
        with held(lock, tmp_path):
            lock.unlink()
            (tmp_path / "other").unlink()

    with pytest.raises(LostFolderError):
        write_without_lock()


@pytest.mark.parametrize("kind", PLANTED)
def test_only_a_plain_file_is_opened(kind: str, ours: Path) -> None:
    path = ours / "file"
    with planted(kind, path), refuses(ResourceError, "ours/file; cp mv"):
        open_plain(path, os.O_WRONLY)


def test_an_open_file_is_recognised_at_its_path_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    descriptor = open_plain(path, os.O_WRONLY)
    assert is_at(descriptor, path)
    path.rename(tmp_path / "other")
    assert not is_at(descriptor, path)
    write_new(path, b"new")
    assert not is_at(descriptor, path)
    os.close(descriptor)


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    write_new(tmp_path / "file", b"old")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"


def test_each_new_folder_is_synced_in_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    descriptors = Path("/proc/self/fd")
    monkeypatch.setattr(
        os, "fsync", lambda number: synced.append((descriptors / str(number)).readlink())
    )
    make_folders(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    make_folders(tmp_path / "a")
    assert len(synced) == 3


def test_a_folder_is_removed_with_its_content_and_a_link_without(tmp_path: Path) -> None:
    make_folders(tmp_path / "made" / "inner")
    make_folders(tmp_path / "kept" / "inner")
    write_new(tmp_path / "made" / "inner" / "file", b"1")
    for link in (tmp_path / "link", tmp_path / "made" / "link"):
        link.symlink_to(tmp_path / "kept")
    remove_all(tmp_path / "link")
    remove_all(tmp_path / "made")
    remove_all(tmp_path / "made")
    assert names_in(tmp_path) == ["kept"]
    assert names_in(tmp_path / "kept") == ["inner"]


@pytest.mark.parametrize("kind", ["link to a file", "second name of a file"])
def test_a_file_is_read_behind_a_link(kind: str, ours: Path) -> None:
    path = ours / "file"
    with planted(kind, path):
        assert read_file(path) == b"theirs\n"


@pytest.mark.parametrize("kind", ["link to a folder", "link to a device", "pipe", "folder"])
def test_what_is_not_a_file_is_refused_unread(kind: str, ours: Path) -> None:
    path = ours / "file"
    with planted(kind, path):
        for read in (read_file, check_is_file):
            with refuses(DamagedError, "ours/file"):
                read(path)


def test_a_missing_file_and_a_link_to_nothing_are_missing(ours: Path) -> None:
    path = ours / "file"
    with pytest.raises(FileNotFoundError):
        read_file(path)
    with planted("link to nothing", path), pytest.raises(FileNotFoundError):
        read_file(path)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space"),
        (errno.EFBIG, "place files grow"),
        (errno.EROFS, "place written"),
        (errno.EACCES, "permission"),
        (errno.EPERM, "permission"),
        (errno.EIO, "disk"),
        (errno.ESTALE, "mount"),
        (errno.ENOTCONN, "mount"),
        (errno.ENOLCK, "locks"),
        (errno.ENOSYS, "locks"),
    ],
)
def test_a_disk_that_refuses_is_a_resource_error_that_names_the_path(
    number: int, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_more() -> None:
        with new_folder(tmp_path / "made", FORMAT, 1, overwrite=False):
            refusing(number)()

    with refuses(ResourceError, f"made {os.strerror(number)}; {advice}"):
        write_more()
    assert names_in(tmp_path) == []
    monkeypatch.setattr(os, "mkdir", refusing(number))
    with refuses(ResourceError, f"made {os.strerror(number)}; {advice}"):
        write_folder(tmp_path / "made", "new")
    assert names_in(tmp_path) == []


def test_a_place_that_makes_no_folders_is_a_wrong_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", refusing(errno.ENOENT))  # as /proc does
    with refuses(ConfigError, "made"):
        write_folder(tmp_path / "made", "new")


@pytest.mark.parametrize("path", ["file/made", "file/deeper/made", "x" * 300, "loop/made"])
def test_an_impossible_path_is_a_wrong_option(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with refuses(ConfigError, tmp_path / path, recorded=False):
        write_folder(tmp_path / path, "new")


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        (None, ""),
        ("made", ""),
        ("made/inner", ""),
        (".made.nmtkit-partial/inner", ""),
        ("made too", "made too"),
        ("other/file", "other/file"),
    ],
)
def test_an_error_elsewhere_names_that_place_too(
    place: str | None, keys: str, tmp_path: Path
) -> None:
    filename = place and str(tmp_path / place)
    with (
        refuses(ResourceError, f"made {keys}"),
        disk_errors(tmp_path / "made"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), filename)


def test_other_errors_pass_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), disk_errors(tmp_path):
        (tmp_path / "missing").read_bytes()
