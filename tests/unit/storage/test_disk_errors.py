"""What disks and paths refuse is reported in one line that names the path and how to fix it."""

import errno
import os
import re
from pathlib import Path

import pytest

from nmtkit.errors import ConfigError, ResourceError
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import new_folder
from tests.folders import FORMAT, names_in, refusing, write_folder


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
        (errno.ESTALE, "mount its file system again"),
        (errno.ENOTCONN, "mount its file system again"),
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
