"""What disks and paths refuse is reported in one line that names the path and how to fix it."""

import errno
import os
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, ResourceError
from nmtkit.storage.disk import disk_errors
from nmtkit.storage.durable import new_folder
from tests.folders import FORMAT, names_in, refusing, write_folder
from tests.messages import refuses


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
