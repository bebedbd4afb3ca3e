"""Files and folders that appear whole or not at all, and survive a kill at any moment.

The only module that creates, renames or deletes what users see. A folder is written under a hidden
name, its files synced and hashed, described by a manifest, and renamed into place. Hidden names
beside NAME begin with `.NAME.nmtkit-` and end with what they are for: `partial` (being written),
`old` (giving way), `removed` (being deleted), `lock` (the writer's). The next writer of NAME clears
what a killed one left. Appended logs are not written here.
"""

# Every change on disk is a call of `os`, so that tests can stop the process before each.
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH105, PTH106, PTH108, PTH116, PTH208

import fcntl
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.errors import ConfigError, DamagedError
from nmtkit.storage import manifest as manifests
from nmtkit.storage.disk_errors import creation_errors, disk_errors, hidden_name
from nmtkit.storage.manifest import Json

_PARTIAL, _OLD, _REMOVED, _LOCK = "partial", "old", "removed", "lock"
_HIDDEN_NAME = re.compile(rf"\.(.+)\.nmtkit-(?:{_PARTIAL}|{_OLD}|{_REMOVED}|{_LOCK})", re.DOTALL)


@dataclass(frozen=True)
class StagedFolder:
    """A folder that is being written.

    Attributes:
        path: where to write its files.
        fields: what its manifest is to say beside the hashes; fill it before the block ends.
    """

    path: Path
    fields: dict[str, Json]


@contextmanager
def new_folder(
    final: Path, format: str, version: int, *, overwrite: bool
) -> Iterator[StagedFolder]:
    """Yield a hidden folder to write into; it becomes `final` when the block ends.

    After an exception nothing of it remains, and what stood at `final` still stands there, unless
    the disk failed after the new folder had taken its place.

    Args:
        final: the folder to make; its parents are made too.
        format, version: the format's name and version for the manifest.
        overwrite: replace a folder of the same format.

    Raises:
        ConfigError: `final` exists and may not be replaced, is not a possible path, or is being
            written by another process.
        ResourceError: no space, no permission, a failing disk, also within the block.
    """
    with disk_errors(final):
        with creation_errors(final):
            _make_folders(final.absolute().parent)
        with _held(hidden_name(final, _LOCK), final):
            _clear_leftovers(final)
            check_is_free(final, format, overwrite)
            staged = StagedFolder(hidden_name(final, _PARTIAL), {})
            try:
                with creation_errors(final):
                    os.mkdir(staged.path)
                yield staged
                _seal(staged, format, version)
                _publish(staged.path, final)
            except BaseException:
                with suppress(OSError):
                    _clear_leftovers(final)
                raise


def check_is_free(final: Path, format: str, overwrite: bool) -> None:
    """Check that `new_folder` does not refuse a path for what stands there already.

    Raises:
        ConfigError: it does.
    """
    if not os.path.lexists(final):
        return
    if not overwrite:
        raise ConfigError(f"{final}: already exists; choose another name or add --overwrite")
    if final.is_symlink() or _format_of(final) != format:
        raise ConfigError(
            f"{final}: already exists and is not a folder of format {format}, so that --overwrite "
            "does not replace it; choose another name or delete it yourself"
        )


def read_manifest(folder: Path, format: str, version: int) -> dict[str, Any]:
    """Return the manifest of a folder, after checks that read no other file's content.

    Args:
        folder: a folder that `new_folder` made.
        format: the format it must have.
        version: the newest version that the caller understands.

    Raises:
        DamagedError: no such folder, no or a damaged manifest, another format, a later version,
            a file that is missing, of another size, or a symbolic link.
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(folder):
        if _is_cut_replacement(folder):
            with _held(hidden_name(folder, _LOCK), folder):
                _clear_leftovers(folder)
        return manifests.read(folder, format, version)


def replace_file(path: Path, data: bytes) -> None:
    """Make a file hold `data`; at any moment a reader finds all of the old or all of the new.

    Raises:
        ConfigError, ResourceError: as `new_folder`.
    """
    with disk_errors(path):
        partial = hidden_name(path, _PARTIAL)
        try:
            _write(partial, data)
            os.replace(partial, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise
        _sync(path.absolute().parent)


def make_folder(path: Path) -> None:
    """Make an empty folder, and its parents, where there is none yet.

    Raises:
        ConfigError, ResourceError: as `new_folder`.
    """
    with disk_errors(path), creation_errors(path):
        _make_folders(path.absolute())


def remove(path: Path) -> None:
    """Delete a folder or file, if it is there; renamed away first, it is never seen in part.

    Raises:
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(path):
        _retire(path, hidden_name(path, _REMOVED))


def remove_leftovers(parent: Path) -> None:
    """Clear what killed writers left in a folder that nobody may be writing in now.

    Raises:
        ResourceError: no permission, a failing disk.
    """
    with disk_errors(parent):
        for entry in sorted(os.listdir(parent)):
            leftover = _HIDDEN_NAME.fullmatch(entry)
            if leftover is not None:
                _clear_leftovers(parent / leftover[1])
                _remove(parent / entry)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep out of a folder whoever else asks for its lock, which ends with the process.

    Raises:
        ConfigError: another process holds it, which the message names.
        ResourceError: the folder cannot be written to.
    """
    with disk_errors(folder), _held(folder / ".lock", folder):
        yield


def _make_folders(path: Path) -> None:
    """Make a folder and those above it, where they are missing, so that a power cut takes none."""
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    os.makedirs(path, exist_ok=True)
    for folder in reversed(missing):
        _sync(folder.parent)


def _format_of(folder: Path) -> object:
    try:
        return manifests.load(folder).get("format")
    except (DamagedError, NotADirectoryError):
        return None


def _seal(staged: StagedFolder, format: str, version: int) -> None:
    """Sync all files of a staged folder, describe them by a manifest, and sync the folders."""
    mode = staged.path.stat().st_mode & 0o666  # what files get where nobody says otherwise
    for path in manifests.files_in(staged.path):
        os.chmod(path, mode)  # safetensors lets nobody but the owner read what it writes
        _sync(path)
    manifest = manifests.describe(staged.path, format, version, staged.fields)
    _write(staged.path / manifests.MANIFEST, manifest)
    for parent, _, _ in os.walk(staged.path):
        _sync(Path(parent))


def _publish(staged: Path, final: Path) -> None:
    """Rename a sealed folder into place; what stands there gives way and is deleted."""
    former = hidden_name(final, _OLD)
    if os.path.lexists(final):
        os.rename(final, former)
    os.rename(staged, final)
    _sync(staged.parent)
    _retire(former, hidden_name(final, _REMOVED))


def _is_cut_replacement(final: Path) -> bool:
    """Tell whether a writer was killed between the two renames of a replacement."""
    return os.path.lexists(hidden_name(final, _OLD)) and not os.path.lexists(final)


def _clear_leftovers(final: Path) -> None:
    """Bring back what was about to be replaced, and delete what was not finished."""
    former = hidden_name(final, _OLD)
    if _is_cut_replacement(final):
        os.rename(former, final)
        _sync(former.parent)
    _remove(hidden_name(final, _PARTIAL))
    _retire(former, hidden_name(final, _REMOVED))


@contextmanager
def _held(lock: Path, what: Path) -> Iterator[None]:
    """Hold a lock file; the system frees it when its holder is killed, though the file stays."""
    with creation_errors(what):
        descriptor = _acquire(lock, what)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(descriptor)


def _acquire(lock: Path, what: Path) -> int:
    """Return the descriptor of a lock file that is locked and stands where others look for it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, what)
            if _is_at(descriptor, lock):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the former holder deleted it after it was opened here


def _lock(descriptor: int, what: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 1024).decode(errors="replace") or "another process"
        raise ConfigError(
            f"{what}: in use by {holder}; wait until it ends or stop it, then try again"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _write(path: Path, data: bytes) -> None:
    """Write a file and sync it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _sync(path: Path) -> None:
    """Have the disk keep the content of a file, or the names in a folder, through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _retire(path: Path, removed: Path) -> None:
    """Delete what stands at a path, if anything, under the name `removed`."""
    _remove(removed)
    if os.path.lexists(path):
        os.rename(path, removed)
        _sync(removed.parent)
        _remove(removed)


def _remove(path: Path) -> None:
    """Delete what stands at a path, if anything, file by file."""
    if path.is_dir() and not path.is_symlink():
        for entry in os.listdir(path):
            _remove(path / entry)
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)
