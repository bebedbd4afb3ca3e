"""One axis of a plot: the values that it spans, where a value lies on it, and its ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_MARGIN = 0.04
_LEAST_MARGIN = 1e-12
"""No axis is so short that floats run out of digits on it."""

_MARGIN_OF_ONE_VALUE = 0.1
_EQUAL = 1e-9
"""Values that differ by no more than this part of themselves are one value."""

_MANTISSAS = (1, 2, 5, 10)
_LEAST_EXPONENT = -5  # of a step between ticks that are written without an exponent
_LARGE = 1e7  # a tick from here on is written with an exponent


@dataclass(frozen=True)
class Tick:
    """A value that an axis names."""

    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `start` to `end`, which may be smaller."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the pixel of a value of the range."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int, least_step: float) -> list[Tick]:
        """Return `most` ticks, give or take one, at round values of the range."""
        wanted = max((self.high - self.low) / most, least_step)
        power = 10.0 ** _exponent(wanted)
        step = next(one * power for one in _MANTISSAS if one * power >= wanted * (1 - _EQUAL))
        first, last = math.ceil(self.low / step - _EQUAL), math.floor(self.high / step + _EQUAL)
        numbers = range(first, last + 1)
        return [Tick(number * step, _label(number * step, step)) for number in numbers]


def spanning(values: Iterable[float], pixels: tuple[float, float], *, from_zero: bool) -> Axis:
    """Return an axis for some values, with a margin around them.

    Args:
        values: finite ones, at least one.
        pixels: where the axis starts and ends.
        from_zero: it begins at 0, unless there are values below.
    """
    numbers = [*values, *([0.0] if from_zero else [])]
    low, high = min(numbers), max(numbers)
    size = max(abs(low), abs(high))
    if high - low <= size * _EQUAL:
        margin = size * _MARGIN_OF_ONE_VALUE or 1.0
    else:
        margin = (high - low) * _MARGIN
    margin = max(margin, _LEAST_MARGIN)
    return Axis(low if from_zero and low == 0 else low - margin, high + margin, *pixels)


def _label(value: float, step: float) -> str:
    """Write a tick with as many digits as distinguish it from the next."""
    if value == 0:
        return "0"
    exponent = _exponent(step)
    if exponent >= _LEAST_EXPONENT and abs(value) < _LARGE:
        return f"{value:,.{max(0, -exponent)}f}"
    digits = max(0, _exponent(abs(value)) - exponent)
    mantissa, power = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(power)}"


def _exponent(value: float) -> int:
    """Return the power of ten of a value's first digit; a rounding below a power is that power."""
    return math.floor(math.log10(value) + _EQUAL)
