"""Numbers as people read them: time spans, sizes, numbers with a prefix, repaired outputs."""

import math
from collections import Counter

SECONDS_A_MINUTE = 60
_MEBIBYTE = 2**20


def duration(seconds: float) -> str:
    """Write a time span as hours, minutes and seconds, the larger two of them."""
    if not math.isfinite(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def mebibytes(size: int) -> str:
    """Write a number of bytes as MiB, without a space."""
    return f"{size / _MEBIBYTE:.0f}MiB"


def prefixed(number: float) -> str:
    """Write a number with three digits and the prefix of the unit that follows it."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if number < 1000:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} E"


def repaired(name: str, counts: Counter[bool | None]) -> str:
    """Write how many outputs there are, and how many of them were repaired.

    Args:
        name: of the outputs, in the plural.
        counts: of outputs, by whether each was repaired; None = it is not counted.
    """
    return f"{name}: {counts[True] + counts[False]}, mended: {counts[True]}"
