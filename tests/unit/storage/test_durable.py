"""Laws of what appears on disk: whole or not at all, and nothing beside it."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, DamagedError, LostFolderError, ResourceError
from nmtkit.storage.durable import (
    format_of,
    locked,
    make_folder,
    new_folder,
    open_log,
    read_manifest,
    remove,
    remove_leftovers,
    replace_file,
)
from nmtkit.storage.manifest import verify_files
from tests.faults.harness import held_by_another_process
from tests.folders import FORMAT, contents, names_in, read_folder, refusing, write_folder
from tests.messages import refuses

# ------------------------------------------------------------------------------------- writing


def test_a_folder_appears_when_its_block_ends_and_nothing_else_remains(tmp_path: Path) -> None:
    final = tmp_path / "made"
    with new_folder(final, FORMAT, 1, overwrite=False) as staged:
        (staged.path / "one").write_text("1")
        assert not final.exists()
        assert all(name.startswith(".") for name in names_in(tmp_path))
    assert names_in(tmp_path) == ["made"]
    assert names_in(final) == ["manifest.json", "one"]


def test_parents_are_made(tmp_path: Path) -> None:
    assert read_folder(write_folder(tmp_path / "a" / "b" / "made", "new")) == "new"


def test_a_relative_path_with_dots_is_the_place_that_it_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(Path("made"), "new")
    assert read_folder(tmp_path / "made") == "new"
    monkeypatch.chdir(tmp_path / "made")
    with refuses(ConfigError, ".; --overwrite"):
        write_folder(Path(), "other")
    assert read_folder(Path()) == "new"


def test_files_get_the_permissions_that_new_files_get(tmp_path: Path) -> None:
    with new_folder(tmp_path / "made", FORMAT, 1, overwrite=False) as staged:
        for name, mode in (("closed", 0o600), ("open", 0o777)):
            (staged.path / name).write_text("1")
            (staged.path / name).chmod(mode)
    (tmp_path / "ordinary").write_text("1")
    ordinary = stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "made").iterdir()}
    assert modes == {ordinary}


def test_everything_is_synced_before_it_is_renamed_and_the_rename_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    synced_before: list[set[int]] = []
    rename = os.rename

    def watched_rename(source: Path, target: Path) -> None:
        synced_before.append(set(synced))
        synced.clear()
        rename(source, target)

    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    monkeypatch.setattr(os, "rename", watched_rename)
    made = write_folder(tmp_path / "made", "new")
    content = {path.stat().st_ino for path in (made, *made.rglob("*"))}
    assert len(content) == 5
    assert synced_before == [content]
    assert synced == {tmp_path.stat().st_ino}


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_exception_leaves_what_was_there(overwrite: bool, tmp_path: Path) -> None:
    if overwrite:
        write_folder(tmp_path / "made", "old")

    def fail() -> None:
        with new_folder(tmp_path / "made", FORMAT, 1, overwrite=overwrite) as staged:
            (staged.path / "one").write_text("1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names_in(tmp_path) == (["made"] if overwrite else [])
    assert not overwrite or read_folder(tmp_path / "made") == "old"


def test_a_failed_rename_brings_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "made", "old")
    rename, calls = os.rename, []

    def fail_second(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == 2:
            refusing(errno.EIO)()
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_second)
    with refuses(ResourceError, "made"):
        write_folder(tmp_path / "made", "new", overwrite=True)
    assert names_in(tmp_path) == ["made"]
    assert read_folder(tmp_path / "made") == "old"


# --------------------------------------------------------------------------- what exists already


def write_new_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_folder_does_not_appear_in_a_folder_that_replaced_its_own(
    is_followed: bool, tmp_path: Path
) -> None:
    parent = tmp_path / "parent"

    def write() -> None:
        with new_folder(parent / "made", FORMAT, 1, overwrite=False):
            parent.rename(tmp_path / "renamed")
            if is_followed:  # by another writer, which is as far
                write_new_file(parent / ".made.nmtkit-partial" / "file")
                write_new_file(parent / ".made.nmtkit-lock")

    with refuses(LostFolderError, "parent/made .made.nmtkit-lock; path command"):
        write()
    expected = {".made.nmtkit-lock", ".made.nmtkit-partial/file"} if is_followed else set()
    assert contents(parent).keys() == expected


def test_an_existing_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    write_folder(tmp_path / "made", "old")
    with (
        refuses(ConfigError, "made; --overwrite"),
        new_folder(tmp_path / "made", FORMAT, 1, overwrite=False),
    ):
        pytest.fail("the block was entered")
    assert names_in(tmp_path) == ["made"]


def test_overwriting_replaces_nothing_else(tmp_path: Path) -> None:
    with new_folder(tmp_path / "other format", "other", 1, overwrite=False):
        pass
    (tmp_path / "plain folder").mkdir()
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to(write_folder(tmp_path / "target", "old"))
    names = names_in(tmp_path)
    for name in ("other format", "plain folder", "file", "link"):
        with refuses(ConfigError, f"{name} --overwrite"):
            write_folder(tmp_path / name, "new", overwrite=True)
    assert names_in(tmp_path) == names
    assert read_folder(tmp_path / "target") == "old"


def test_hidden_files_of_others_stay(tmp_path: Path) -> None:
    for name in (".made.old", ".made.partial", ".made", ".other.nmtkit-partial"):
        (tmp_path / name).write_text("1")
    names = names_in(tmp_path)
    write_folder(tmp_path / "made", "new")
    assert names_in(tmp_path) == sorted([*names, "made"])


# ------------------------------------------------------------------------------------- reading


def test_the_next_reader_undoes_a_replacement_interrupted_between_its_renames(
    tmp_path: Path,
) -> None:
    write_folder(tmp_path / "made", "old")
    write_folder(tmp_path / ".made.nmtkit-partial", "new")
    (tmp_path / "made").rename(tmp_path / ".made.nmtkit-old")
    assert read_folder(tmp_path / "made") == "old"
    assert names_in(tmp_path) == ["made"]


def test_the_format_of_a_folder_is_known_after_an_interrupted_replacement(tmp_path: Path) -> None:
    write_folder(tmp_path / "made", "old")
    (tmp_path / "made").rename(tmp_path / ".made.nmtkit-old")
    assert format_of(tmp_path / "made") == FORMAT
    assert names_in(tmp_path) == ["made"]


def test_what_has_no_manifest_has_no_format(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.json").write_text("x")
    for name in ("file", "missing", "damaged", "."):
        assert format_of(tmp_path / name) is None


def test_reading_changes_nothing_where_nothing_was_cut(tmp_path: Path) -> None:
    write_folder(tmp_path / "made", "new")
    (tmp_path / ".made.nmtkit-partial").mkdir()
    read_folder(tmp_path / "made")
    with refuses(DamagedError, "missing"):
        read_manifest(tmp_path / "missing", FORMAT, 1)
    assert names_in(tmp_path) == [".made.nmtkit-partial", "made"]


# ----------------------------------------------------------------------- files, removal, leftovers


def test_a_replaced_file_holds_the_new_and_nothing_is_left(tmp_path: Path) -> None:
    for data in (b"old\n", b"new\n"):
        for parts in (data, iter([data[:2], data[2:]])):
            replace_file(tmp_path / "file", parts)
            assert (tmp_path / "file").read_bytes() == data
    assert names_in(tmp_path) == ["file"]


def test_a_file_that_cannot_be_replaced_holds_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file(tmp_path / "file", b"old\n")
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, refusing(errno.ENOSPC))
            with refuses(ResourceError, "file"):
                replace_file(tmp_path / "file", b"new\n")
        assert (tmp_path / "file").read_bytes() == b"old\n"
        assert names_in(tmp_path) == ["file"]


def test_a_folder_is_out_of_sight_before_any_of_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_folder(tmp_path / "made", "old")
    unlink = os.unlink

    def watched_unlink(path: Path) -> None:
        assert not made.exists()
        unlink(path)

    monkeypatch.setattr(os, "unlink", watched_unlink)
    remove(made)
    assert names_in(tmp_path) == []
    remove(made)  # what is not there needs no removal


def test_leftovers_of_all_names_are_deleted_together(tmp_path: Path) -> None:
    write_folder(tmp_path / "made", "new")
    write_folder(tmp_path / ".lost.nmtkit-old", "old")
    for name in (".made.nmtkit-old", ".a.nmtkit-partial", ".b.nmtkit-removed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("1")
    for name in (".c.nmtkit-lock", ".d.nmtkit-partial", ".notes", ".notes.old"):
        (tmp_path / name).write_text("1")
    remove_leftovers(tmp_path)
    assert names_in(tmp_path) == [".notes", ".notes.old", "lost", "made"]
    assert read_folder(tmp_path / "lost") == "old"
    assert read_folder(tmp_path / "made") == "new"


# -------------------------------------------------------------------------------- other writers


def test_a_folder_that_is_being_written_is_not_touched_by_a_second_writer(tmp_path: Path) -> None:
    final = tmp_path / "made"
    with held_by_another_process(new_folder(final, FORMAT, 1, overwrite=False)) as process:
        names = names_in(tmp_path)
        with refuses(ConfigError, f"made {process}"):
            write_folder(final, "new")
        assert names_in(tmp_path) == names
    assert read_folder(write_folder(final, "new")) == "new"


def test_a_lock_keeps_others_out_until_its_holder_ends_or_is_killed(tmp_path: Path) -> None:
    with (
        held_by_another_process(locked(tmp_path)) as process,
        refuses(ConfigError, f"process {process}"),
        locked(tmp_path),
    ):
        pytest.fail("two hold the lock")
    with (
        locked(tmp_path),
        refuses(ConfigError, f"process {os.getpid()}"),
        locked(tmp_path),
    ):
        pytest.fail("two hold the lock")
    with locked(tmp_path):
        pass
    assert names_in(tmp_path) == []


# ----------------------------------------------------------------------- disks that refuse


@pytest.mark.parametrize(
    "action",
    [
        lambda path: replace_file(path / "file", b"new"),
        lambda path: make_folder(path / "a" / "b"),
        lambda path: remove(path / "made"),
        lambda path: remove_leftovers(path),
        lambda path: locked(path).__enter__(),
        lambda path: open_log(path / "log"),
    ],
    ids=["replace_file", "make_folder", "remove", "remove_leftovers", "locked", "open_log"],
)
def test_every_writer_reports_a_refusal_as_a_resource_error(
    action: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / ".x.nmtkit-partial").write_text("1")
    for name in ("open", "mkdir", "rename", "unlink"):
        monkeypatch.setattr(os, name, refusing(errno.EROFS))
    with refuses(ResourceError, tmp_path):
        action(tmp_path)


def test_reading_reports_a_refusal_as_a_resource_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_folder(tmp_path / "made", "new")
    manifest = read_manifest(made, FORMAT, 1)
    monkeypatch.setattr(Path, "open", refusing(errno.EIO))
    for action in (
        lambda: read_manifest(made, FORMAT, 1),
        lambda: verify_files(made, manifest),
    ):
        with refuses(ResourceError, "made"):
            action()


def test_a_replaced_folder_that_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    write_folder(tmp_path / "made", "new")
    write_folder(tmp_path / "replaced", "old").rename(tmp_path / ".made.nmtkit-old")
    write_folder(tmp_path / "made", "newer", overwrite=True)
    assert read_folder(tmp_path / "made") == "newer"
    assert names_in(tmp_path) == ["made"]
