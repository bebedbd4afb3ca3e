"""Locks, and files that no other path leads to; test_durable_links.py has the links."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import LostFolderError, ResourceError
from nmtkit.storage.disk import held, is_at, make_folders, open_plain, remove_all, write_new
from tests.folders import PLANTED, contents, names_in, planted
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
def test_only_a_plain_file_is_opened(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "file"
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
    write_new(tmp_path / "made" / "inner" / "file", b"1")
    (tmp_path / "link").symlink_to(tmp_path / "made")
    remove_all(tmp_path / "link")
    assert names_in(tmp_path / "made") == ["inner"]
    remove_all(tmp_path / "made")
    remove_all(tmp_path / "made")
    assert names_in(tmp_path) == []
