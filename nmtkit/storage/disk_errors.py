"""What disks and paths refuse, as errors in one line: what, where, how to fix it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmtkit.errors import ConfigError, ResourceError

_FULL = "free some space there, or choose a place on another disk"
_CLOSED = "get the permission for it, or choose another place"
_UNLOCKABLE = "choose a place on a file system that has file locks"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "choose a place where files may grow larger (see ulimit -f)",
    errno.EROFS: "choose a place that can be written to",
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EIO: "the disk fails; check it, or choose a place on another one",
    errno.ENOLCK: _UNLOCKABLE,
    errno.ENOSYS: _UNLOCKABLE,
}
_OTHER_PATH = "choose another path"
_UNFIT_PATHS = (
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ENOTDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Report what the operating system refuses, and a user can fix, as errors naming `path`.

    Raises:
        ResourceError: no space, no permission, a failing disk.
        ConfigError: `path` leads through a file, or is too long.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _ADVICE:
            raise ResourceError(_described(error, path, _ADVICE[error.errno])) from error
        if error.errno in _UNFIT_PATHS:
            raise ConfigError(_described(error, path, _OTHER_PATH)) from error
        raise


@contextmanager
def creation_errors(path: Path) -> Iterator[None]:
    """Report a place that takes no new files, such as /proc, as a path that cannot be."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConfigError(_described(error, path, _OTHER_PATH)) from error


def check_path(path: Path) -> None:
    """Refuse a path that safetensors cannot be given: ConfigError if it is not valid UTF-8."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{path}: a path that is not valid UTF-8, under which no weights can be stored; choose "
            "another one"
        ) from None


def hidden_name(path: Path, purpose: str) -> Path:
    """Return the hidden name next to a path that it is written under; errors do not show it."""
    place = path.absolute()
    return place.parent / f".{place.name}.nmtkit-{purpose}"


def _described(error: OSError, path: Path, advice: str) -> str:
    """Describe an error, with its place unless that is the path, in it, or a hidden name of it."""
    place = Path(os.fsdecode(error.filename)).absolute() if error.filename else path.absolute()
    is_here = place.is_relative_to(path.absolute()) or str(place).startswith(
        str(hidden_name(path, ""))
    )
    return f"{path}: {error.strerror}{'' if is_here else f' ({place})'}; {advice}"
