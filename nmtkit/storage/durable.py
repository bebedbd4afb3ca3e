"""Atomic writes: files and folders appear complete or not at all, whenever the process is killed.

Only this module and `growing_file` create, rename or delete files that users see. Exceptions are
logs, which grow line by line. A folder is written in four steps: write the files under a hidden
name, sync and hash them, write the manifest, rename the folder into place.

Hidden names next to NAME begin with `.NAME.nmtkit-`: `partial` (being written), `old` (being
replaced), `removed` (being deleted), `lock` (held by the writer). The next writer of NAME deletes
what a killed writer left.
"""

# Every change on disk is a call of `os`, so that tests can stop the process before each one.
# ruff: noqa: PTH101, PTH102, PTH104, PTH105, PTH108, PTH208

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.signals import block_stop_signals
from nmtkit.storage import manifest as manifests
from nmtkit.storage.disk import (
    LOCK,
    OLD,
    PARTIAL,
    REMOVED,
    Lock,
    creation_errors,
    disk_errors,
    held,
    hidden_name,
    make_folders,
    open_plain,
    remove_all,
    sync,
    visible_name,
    write_new,
)
from nmtkit.storage.manifest import Json


@dataclass(frozen=True)
class StagedFolder:
    """A folder that is being written.

    Attributes:
        path: where to write its files.
        fields: further fields of its manifest; set them before the `with` block ends.
    """

    path: Path
    fields: dict[str, Json]


@contextmanager
def new_folder(
    final: Path, format: str, version: int, *, overwrite: bool
) -> Iterator[StagedFolder]:
    """Yield a hidden folder to write into; it becomes `final` when the block ends.

    After an exception the hidden folder is deleted and `final` is unchanged. If the disk fails
    after the new folder is in place, it stays.

    Args:
        final: the folder to make; missing parents are made too.
        format, version: name and version of the format, for the manifest.
        overwrite: replace a folder of the same format.

    Raises:
        ConfigError: `final` exists and may not be replaced, its path is impossible, or another
            process is writing it.
        ResourceError: no space, no permission, a failing disk; also inside the block.
        LostFolderError: the folder around it was renamed, deleted or replaced meanwhile.
    """
    with disk_errors(final):
        with creation_errors(final):
            make_folders(final.absolute().parent)
        with held(hidden_name(final, LOCK), final) as lock:
            _clear_leftovers(final)
            check_is_free(final, format, overwrite)
            staged = StagedFolder(hidden_name(final, PARTIAL), {})
            try:
                with creation_errors(final):
                    os.mkdir(staged.path)
                yield staged
                lock.check()
                _seal(staged, format, version)
                lock.check()  # sealing takes long
                _publish(staged.path, final)
            except BaseException:
                with block_stop_signals(), suppress(OSError):
                    lock.check()  # otherwise another process may be writing there
                    _clear_leftovers(final)
                raise


def check_is_free(final: Path, format: str, overwrite: bool) -> None:
    """Check that `new_folder` may create or replace a path.

    Raises:
        ConfigError: the path exists, and `overwrite` is off or does not apply to it.
    """
    if not os.path.lexists(final):
        return
    if not overwrite:
        raise ConfigError(f"{final}: already exists; choose another name or add --overwrite")
    if final.is_symlink() or format_of(final) != format:
        raise ConfigError(
            f"{final}: already exists and is not a folder of format {format}, so --overwrite "
            "does not replace it; choose another name or delete it yourself"
        )


def read_manifest(folder: Path, format: str, version: int) -> dict[str, Any]:
    """Return the manifest of a folder that `new_folder` made, checked by `manifest.read`.

    A replacement that was killed between its two renames is undone first.

    Args:
        folder, format, version: as in `manifest.read`.

    Raises:
        DamagedError: as in `manifest.read`.
        ConfigError: another process is writing the folder.
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(folder):
        _undo_interrupted_replacement(folder)
        return manifests.read(folder, format, version)


def format_of(folder: Path) -> object:
    """Return the format that a folder's manifest names, unchecked; None without a manifest.

    Raises:
        ConfigError, ResourceError: as in `read_manifest`.
    """
    with disk_errors(folder):
        _undo_interrupted_replacement(folder)
        try:
            return manifests.load(folder).get("format")
        except (DamagedError, NotADirectoryError):
            return None


def replace_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replace a file's content with `data`; readers see all of the old or all of the new content.

    Parts of it are written one by one. A link is replaced by a file; what it leads to stays.

    Raises:
        ConfigError: the path is a folder, pipe or device; or as `new_folder`.
        ResourceError: as `new_folder`.
    """
    with disk_errors(path):
        if path.exists() and not (path.is_file() or path.is_symlink()):
            raise ConfigError(f"{path}: exists and is not a file; choose another name")
        partial = hidden_name(path, PARTIAL)
        try:
            remove_all(partial)
            write_new(partial, data)
            os.replace(partial, path)
        except BaseException:
            with block_stop_signals(), suppress(OSError):
                os.unlink(partial)
            raise
        sync(path.absolute().parent)


def open_log(path: Path) -> BinaryIO:
    """Open a log to append to, without a buffer; it is created if missing.

    Raises:
        ResourceError: the path is a link, pipe, device or folder; no permission, a failing disk.
        ConfigError: the path is impossible.
    """
    with disk_errors(path):
        return os.fdopen(open_plain(path, os.O_WRONLY | os.O_APPEND), "ab", buffering=0)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, where missing.

    Raises:
        ConfigError, ResourceError: as `new_folder`.
    """
    with disk_errors(path), creation_errors(path):
        make_folders(path.absolute())


def remove(path: Path) -> None:
    """Delete a folder or file, if it exists; it is renamed first, so nobody sees half of it.

    Raises:
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(path):
        _retire(path, hidden_name(path, REMOVED))


def remove_leftovers(parent: Path) -> None:
    """Delete the hidden files that killed writers left in a folder; no writer may be active.

    Raises:
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(parent):
        for entry in sorted(os.listdir(parent)):
            name = visible_name(entry)
            if name is not None:
                _clear_leftovers(parent / name)
                remove_all(parent / entry)


@contextmanager
def locked(folder: Path) -> Iterator[Lock]:
    """Hold the lock of a folder; it ends with the process at the latest.

    Raises:
        ConfigError: another process holds it; the message names that process.
        ResourceError: the folder cannot be written to.
        LostFolderError: as in `held`.
    """
    with disk_errors(folder), held(folder / ".lock", folder) as lock:
        yield lock


def _seal(staged: StagedFolder, format: str, version: int) -> None:
    """Sync all files of a staged folder, write its manifest, and sync the folders."""
    mode = staged.path.stat().st_mode & 0o666  # the default mode of new files
    for path in manifests.files_in(staged.path):
        os.chmod(path, mode)  # safetensors writes files that only their owner can read
        sync(path)
    manifest = manifests.describe(staged.path, format, version, staged.fields)
    write_new(staged.path / manifests.MANIFEST, manifest)
    for parent, _, _ in os.walk(staged.path):
        sync(Path(parent))


def _publish(staged: Path, final: Path) -> None:
    """Rename a sealed folder into place; delete the folder that it replaces."""
    old = hidden_name(final, OLD)
    if os.path.lexists(final):
        os.rename(final, old)
    os.rename(staged, final)
    sync(staged.parent)
    _retire(old, hidden_name(final, REMOVED))


def _undo_interrupted_replacement(folder: Path) -> None:
    if _is_interrupted_replacement(folder):
        with held(hidden_name(folder, LOCK), folder):
            _clear_leftovers(folder)


def _is_interrupted_replacement(final: Path) -> bool:
    """Return whether a writer was killed between the two renames of a replacement."""
    return os.path.lexists(hidden_name(final, OLD)) and not os.path.lexists(final)


def _clear_leftovers(final: Path) -> None:
    """Undo an interrupted replacement, and delete unfinished and replaced folders."""
    old = hidden_name(final, OLD)
    if _is_interrupted_replacement(final):
        os.rename(old, final)
        sync(old.parent)
    remove_all(hidden_name(final, PARTIAL))
    _retire(old, hidden_name(final, REMOVED))


def _retire(path: Path, removed: Path) -> None:
    """Rename a path to `removed`, if it exists, and delete it there."""
    remove_all(removed)
    if os.path.lexists(path):
        os.rename(path, removed)
        sync(removed.parent)
        remove_all(removed)
