"""Reading the files of a folder: links are followed, but they must lead to a plain file.

Reading a pipe could wait forever, and a device may have no end.

A module of its own: the manifest and the readers of single files share it.
"""

import stat
from pathlib import Path

from nmtkit.errors import DamagedError


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
