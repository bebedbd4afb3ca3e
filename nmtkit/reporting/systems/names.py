"""Short names of systems on a page: file names without the parts that all of them share.

A module of its own: the rule and its exceptions are tested without a page.
"""

import re
from collections.abc import Sequence

from nmtkit.reporting.svg_text import visible_text

_PARTS = re.compile(r"[^/._-]+|[/._-]")
_SEPARATORS = "/._-"


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names of files without their common ends and beginnings.

    The end goes first, as it is the suffix. A beginning stays if only a number would follow it.
    No name becomes empty.
    """
    if len(names) == 1:
        name = visible_text(names[0])
        return [name.rpartition("/")[2] or name]
    parts = [_PARTS.findall(visible_text(name)) for name in names]
    parts = [one[::-1] for one in _without_common_start([one[::-1] for one in parts])]
    without_folder = _without_common_start(parts, only_folders=True)
    shortest = _without_common_start(without_folder)
    chosen = shortest if all(map(_has_letter, shortest)) else without_folder
    labels = ["".join(one).strip(_SEPARATORS) or "".join(one) for one in chosen]
    return labels if len(set(labels)) == len(set(names)) else list(map(visible_text, names))


def _without_common_start(parts: list[list[str]], only_folders: bool = False) -> list[list[str]]:
    """Drop the parts with which all lists begin; each list keeps at least one."""
    most = min(map(len, parts)) - 1
    count = 0
    while count < most and len({one[count] for one in parts}) == 1:
        count += 1
    if only_folders:
        first = parts[0][:count]
        count = len(first) - first[::-1].index("/") if "/" in first else 0
    return [one[count:] for one in parts]


def _has_letter(parts: list[str]) -> bool:
    return any(character.isalpha() for part in parts for character in part)
