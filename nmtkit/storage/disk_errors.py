"""Errors of disks and paths as one line each: what is wrong, where, how to fix it.

Messages name the file that a user knows: not the hidden name, `.NAME.nmtkit-PURPOSE`, under which
NAME is written, replaced, deleted or locked.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmtkit.errors import ConfigError, ResourceError

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


def is_hidden_part(place: Path, path: Path) -> bool:
    """Return whether `place` is a hidden path of `path`, or lies in one."""
    return str(place).startswith(str(hidden_name(path, "")))


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
    is_here = place.is_relative_to(path.absolute()) or is_hidden_part(place, path)
    return f"{path}: {error.strerror}{'' if is_here else f' ({place})'}; {advice}"
