"""The single changes on disk of which `durable` and `growing_file` are made, locks, and errors.

No name is written through a link, because somebody else may have put it there: new files are
created exclusively, and a log or lock must be a plain file. Folders may be reached through links.
A file of a folder is read only if it is a plain file, also behind links: a pipe could wait forever.

An error is one line: what is wrong, where, how to fix it. It names the file that a user knows: not
the hidden name, `.NAME.nmtkit-PURPOSE`, under which NAME is written, replaced, deleted or locked.
"""

# Every change on disk is a call of `os`, so that tests can stop the process before each one.
# ruff: noqa: PTH103, PTH106, PTH108, PTH116, PTH208

import errno
import fcntl
import os
import re
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nmtkit.errors import ConfigError, DamagedError, LostFolderError, ResourceError
from nmtkit.signals import block_stop_signals

PARTIAL, OLD, REMOVED, LOCK = "partial", "old", "removed", "lock"
_HIDDEN_NAME = re.compile(rf"\.(.+)\.nmtkit-(?:{PARTIAL}|{OLD}|{REMOVED}|{LOCK})", re.DOTALL)


def hidden_name(path: Path, purpose: str) -> Path:
    """Return the hidden path next to `path` for a purpose."""
    place = path.absolute()
    return place.parent / f".{place.name}.nmtkit-{purpose}"


def visible_name(name: str) -> str | None:
    """Return NAME of a hidden name; None for any other name."""
    hidden = _HIDDEN_NAME.fullmatch(name)
    return None if hidden is None else hidden[1]


_NO_FILE = (errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""Errors of opening a link, a folder, or a pipe or socket that nobody reads."""


def make_folders(path: Path) -> None:
    """Make a folder and its missing parents, and sync each, so that they survive a power cut."""
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    os.makedirs(path, exist_ok=True)
    for folder in reversed(missing):
        sync(folder.parent)


@dataclass(frozen=True)
class Lock:
    """A lock file that this process holds.

    Attributes:
        descriptor: the open file.
        file: the path at which other processes look for it.
        path: what it locks, for messages.
    """

    descriptor: int
    file: Path
    path: Path

    def check(self) -> None:
        """Raise LostFolderError unless the lock keeps other processes out of the path.

        It does not if its folder was renamed, deleted or replaced: another process may write there.
        """
        if not is_at(self.descriptor, self.file):
            raise LostFolderError(
                f"{self.path}: it or its lock {self.file.name} was renamed, deleted, replaced or "
                "unmounted while this process wrote there, so nothing more was written; to "
                "continue, move it back or give its new path, and run the same command again"
            )
        os.utime(self.descriptor)  # so nobody deletes it for its age


@contextmanager
def held(file: Path, path: Path) -> Iterator[Lock]:
    """Hold a lock file; if its holder is killed, the system releases the lock, the file stays.

    Raises:
        LostFolderError: an error in the block, after the lock file disappeared from its path.
    """
    lock = None
    try:
        with block_stop_signals(), creation_errors(path):
            lock = Lock(_acquire(file, path), file, path)
        try:
            yield lock
        except (OSError, ConfigError) as error:
            _check_after(error, lock)
            raise
    finally:
        if lock is not None:
            with block_stop_signals():
                with suppress(OSError):
                    if is_at(lock.descriptor, file):
                        os.unlink(file)
                os.close(lock.descriptor)


def _check_after(error: Exception, lock: Lock) -> None:
    with suppress(PermissionError, TimeoutError):  # then the error itself is reported
        try:
            lock.check()
        except LostFolderError as lost:
            raise lost from error


def _acquire(lock: Path, path: Path) -> int:
    """Return the descriptor of the locked file at `lock`, where other processes look for it."""
    while True:
        descriptor = open_plain(lock, os.O_RDWR)
        try:
            _lock(descriptor, path)
            if is_at(descriptor, lock):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the previous holder deleted the file after it was opened here


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 1024).decode(errors="replace") or "another process"
        raise ConfigError(
            f"{path}: in use by {holder}; wait until it ends or stop it, then try again"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a path leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
            return False
        raise


def open_plain(path: Path, flags: int) -> int:
    """Return the descriptor of a file that no other path leads to; it is created if missing.

    A link is not followed, and a pipe not waited for: ResourceError.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise not_plain_error(path) from error
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise not_plain_error(path)
    return descriptor


def not_plain_error(path: Path) -> ResourceError:
    """Return the error for a path that is not written to, because it is no plain file."""
    return ResourceError(
        f"{path}: not written to, because it is a symbolic or hard link, pipe, device or folder; "
        "replace it by a copy of its own (`cp FILE COPY && mv COPY FILE`), or delete it"
    )


def write_new(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a new file, from all its bytes or from parts of them, and sync it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.writelines([data] if isinstance(data, bytes) else data)
        stream.flush()
        os.fsync(descriptor)


def sync(path: Path) -> None:
    """Flush the content of a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_all(path: Path) -> None:
    """Delete a file, or a folder file by file, if it exists."""
    if path.is_dir() and not path.is_symlink():
        for entry in os.listdir(path):
            remove_all(path / entry)
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def read_file(path: Path) -> bytes:
    """Return the content of a plain file.

    Raises:
        DamagedError: the path leads to a folder, pipe or device.
        OSError: the file is missing, or cannot be read.
    """
    check_is_file(path)
    return path.read_bytes()


def check_is_file(path: Path) -> None:
    """Raise DamagedError for a folder, pipe or device; OSError for a path that leads nowhere."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise DamagedError(f"{path}: not a file; replace it by the file, or delete it")


_FULL = "free some space there, or choose a place on another disk"
_CLOSED = "get the permission for it, or choose another place"
_GONE = "mount its file system again, or choose another place"
_UNLOCKABLE = "choose a place on a file system that has file locks"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "choose a place where files may grow larger (see ulimit -f)",
    errno.EROFS: "choose a place that can be written to",
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EIO: "the disk fails; check it, or choose a place on another one",
    errno.ESTALE: _GONE,
    errno.ENOTCONN: _GONE,
    errno.ENOLCK: _UNLOCKABLE,
    errno.ENOSYS: _UNLOCKABLE,
}
_OTHER_PATH = "choose another path"
_BAD_PATHS = (
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ENOTDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system that a user can fix into errors that name `path`.

    Raises:
        ResourceError: no space, no permission, a failing disk.
        ConfigError: `path` leads through a file, or is too long.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _ADVICE:
            raise ResourceError(_message(error, path, _ADVICE[error.errno])) from error
        if error.errno in _BAD_PATHS:
            raise ConfigError(_message(error, path, _OTHER_PATH)) from error
        raise


@contextmanager
def creation_errors(path: Path) -> Iterator[None]:
    """Raise ConfigError for a folder that takes no new files, such as /proc."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConfigError(_message(error, path, _OTHER_PATH)) from error


def check_path(path: Path) -> None:
    """Raise ConfigError for a path that is not valid UTF-8, which safetensors cannot write to."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{path}: the path is not valid UTF-8, so no weights can be stored there; choose "
            "another one"
        ) from None


def _message(error: OSError, path: Path, advice: str) -> str:
    """Return the message; it names the place unless that lies in `path` or a hidden copy."""
    place = Path(os.fsdecode(error.filename)).absolute() if error.filename else path.absolute()
    is_hidden = str(place).startswith(str(hidden_name(path, "")))
    is_here = is_hidden or place.is_relative_to(path.absolute())
    return f"{path}: {error.strerror}{'' if is_here else f' ({place})'}; {advice}"
