"""Nothing is written through a link or into a pipe that somebody else put there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, ResourceError
from nmtkit.storage.durable import locked, open_log, replace_file
from tests.folders import PLANTED, names_in, planted, read_folder, write_folder
from tests.messages import refuses


@pytest.mark.parametrize("kind", PLANTED)
def test_a_file_is_never_written_through_its_hidden_name(kind: str, ours: Path) -> None:
    with planted(kind, ours / ".file.nmtkit-partial"):
        replace_file(ours / "file", b"new")
    assert (ours / "file").read_bytes() == b"new"
    assert names_in(ours) == ["file"]


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("purpose", ["partial", "removed"])
def test_a_folder_is_never_written_through_its_hidden_names(
    kind: str, purpose: str, ours: Path
) -> None:
    with planted(kind, ours / f".made.nmtkit-{purpose}"):
        write_folder(ours / "made", "new")
    assert read_folder(ours / "made") == "new"
    assert names_in(ours) == ["made"]


@pytest.mark.parametrize("kind", [kind for kind in PLANTED if kind.startswith("link")])
def test_a_link_is_replaced_by_a_file(kind: str, ours: Path) -> None:
    with planted(kind, ours / "file"):
        replace_file(ours / "file", b"new")
    assert not (ours / "file").is_symlink()
    assert (ours / "file").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_file_replaces_nothing_but_files(kind: str, ours: Path) -> None:
    with (
        planted(kind, ours / "file"),
        refuses(ConfigError, "file"),
    ):
        replace_file(ours / "file", b"new")
    assert names_in(ours) == ["file"]


LOCKS_AND_LOGS: dict[str, Callable[[Path], object]] = {
    ".lock": lambda ours: locked(ours).__enter__(),
    ".made.nmtkit-lock": lambda ours: write_folder(ours / "made", "new"),
    "log": lambda ours: open_log(ours / "log"),
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", LOCKS_AND_LOGS)
def test_a_lock_or_log_that_is_not_a_plain_file_is_refused(
    name: str, kind: str, ours: Path
) -> None:
    with planted(kind, ours / name), refuses(ResourceError, f"ours/{name}; cp mv"):
        LOCKS_AND_LOGS[name](ours)
    assert names_in(ours) == [name]


def test_a_log_grows_behind_a_link_to_its_folder(ours: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ours)
    for line in (b"one\n", b"two\n"):
        with open_log(tmp_path / "link" / "log") as log:
            log.write(line)
    assert (ours / "log").read_bytes() == b"one\ntwo\n"


def test_folders_are_written_and_locked_behind_a_link(ours: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(ours)
    write_folder(link / "made", "old")
    write_folder(link / "made", "new", overwrite=True)
    with locked(link / "made"):
        replace_file(link / "made" / "file", b"new")
    assert read_folder(ours / "made") == "new"
    assert link.is_symlink()
