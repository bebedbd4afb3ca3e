"""Hidden names, `.NAME.nmtkit-PURPOSE`, for writing, replacing, deleting and locking NAME.

`durable` creates and finds them; `disk_errors` keeps them out of messages.
"""

import re
from pathlib import Path

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
