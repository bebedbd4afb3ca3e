"""Plain files are read, also behind links; nothing else is opened."""

from pathlib import Path

import pytest

from nmtkit.errors import DamagedError
from nmtkit.storage.disk import check_is_file, read_file
from tests.folders import planted
from tests.messages import refuses


@pytest.mark.parametrize("kind", ["link to a file", "second name of a file"])
def test_a_file_is_read_behind_a_link(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "file"
    with planted(kind, path):
        assert read_file(path) == b"theirs\n"


@pytest.mark.parametrize("kind", ["link to a folder", "link to a device", "pipe", "folder"])
def test_what_is_not_a_file_is_refused_unread(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "file"
    with planted(kind, path):
        for read in (read_file, check_is_file):
            with refuses(DamagedError, "ours/file"):
                read(path)


def test_a_missing_file_and_a_link_to_nothing_are_missing(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / "file"
    with pytest.raises(FileNotFoundError):
        read_file(path)
    with planted("link to nothing", path), pytest.raises(FileNotFoundError):
        read_file(path)
