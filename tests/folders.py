"""Folders of a format of the tests' own, whose files all hold one text, and a disk that refuses."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from nmtkit.storage.durable import new_folder, read_manifest
from nmtkit.storage.manifest import verify_files

FORMAT = "test-format"


def write_folder(final: Path, text: str, overwrite: bool = False) -> Path:
    with new_folder(final, FORMAT, 1, overwrite=overwrite) as staged:
        (staged.path / "inner").mkdir()
        (staged.path / "inner" / "one").write_text(text)
        (staged.path / "two").write_text(text)
        staged.fields["text"] = text
    return final


def read_folder(folder: Path) -> str:
    """Return the text of a folder, which is the same everywhere if it is whole."""
    manifest = read_manifest(folder, FORMAT, 1)
    verify_files(folder, manifest)
    text = (folder / "two").read_text()
    assert manifest["text"] == text == (folder / "inner" / "one").read_text()
    return text


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "link to a file": lambda path, theirs: path.symlink_to(theirs / "file"),
    "link to nothing": lambda path, theirs: path.symlink_to(theirs / "missing"),
    "link to a folder": lambda path, theirs: path.symlink_to(theirs),
    "link to a device": lambda path, _: path.symlink_to("/dev/full"),
    "second name of a file": lambda path, theirs: path.hardlink_to(theirs / "file"),
    "pipe": lambda path, _: os.mkfifo(path),
    "folder": lambda path, _: path.mkdir(),
}
"""Things that somebody else may put where nmtkit writes: (path, a folder of theirs)."""


@contextmanager
def planted(kind: str, path: Path) -> Iterator[None]:
    """Put something at a path, and check afterwards that nothing was written through it."""
    theirs = path.parent.parent / "theirs"
    theirs.mkdir()
    (theirs / "file").write_bytes(b"theirs\n")
    PLANTED[kind](path, theirs)
    yield
    assert contents(theirs) == {"file": b"theirs\n"}


def limit_file_size(num_bytes: int) -> None:
    """Let no file of this process grow beyond a size, until the next call."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))


def refusing(number: int) -> Callable[..., NoReturn]:
    """Return what stands in for a function of `os` that fails with an error number."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return refuse
