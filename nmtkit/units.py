"""What people read: durations, counts, sizes, numbers with an SI prefix, perplexities, any text."""

import math
import re

SECONDS_PER_MINUTE = 60
_MEBIBYTE = 2**20
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters that control a terminal, end a line or turn its direction, and those no text has."""


def duration(seconds: float) -> str:
    """Format a duration in the two largest units: 3h05m, 5m10s, 10s; "unknown" if not finite."""
    if not math.isfinite(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def counted(number: float, units: str) -> str:
    """Format a number with separators and its unit, which is given in the plural or empty."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{digits} {units.removesuffix('s') if number == 1 else units}".rstrip()


def mebibytes(size: int) -> str:
    """Format a number of bytes as MiB, such as 24MiB."""
    return f"{size / _MEBIBYTE:.0f}MiB"


def prefixed(number: float) -> str:
    """Format a number with three digits and an SI prefix, to be followed by its unit: `1.5 G`."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if number < 999.5:  # what three digits show as 1000 has the next prefix
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} E"


def printable(text: str) -> str:
    """Replace what a terminal would act on by escape sequences."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def perplexity(nll: float) -> float:
    """Return exp(nll) of a negative log-likelihood per token; infinity if it overflows."""
    try:
        return math.exp(nll)
    except OverflowError:
        return math.inf
