"""One axis of a plot: its range, the mapping from values to pixels, and its ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_MARGIN = 0.04
_MIN_MARGIN = 1e-12
"""Floats keep enough digits on the shortest axis."""

_MARGIN_OF_ONE_VALUE = 0.1
_EQUAL = 1e-9
"""Values whose relative difference is at most this count as equal."""

_MANTISSAS = (1, 2, 5, 10)
_MIN_EXPONENT = -5  # smaller steps between ticks are written with an exponent
_LARGE = 1e7  # ticks from this size on are written with an exponent


@dataclass(frozen=True)
class Tick:
    """A labelled value on an axis."""

    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A linear map from values `low` to `high` to pixels `start` to `end`, up or down."""

    low: float
    high: float
    start: float
    end: float

    def pixel(self, value: float) -> float:
        """Return the pixel of a value within the range."""
        fraction = (value - self.low) / (self.high - self.low)
        return self.start + fraction * (self.end - self.start)

    def ticks(self, count: int, min_step: float) -> list[Tick]:
        """Return at most `count` + 1 ticks at round values of the range."""
        wanted = max((self.high - self.low) / count, min_step)
        power = 10.0 ** _exponent(wanted)
        step = next(one * power for one in _MANTISSAS if one * power >= wanted * (1 - _EQUAL))
        first, last = math.ceil(self.low / step - _EQUAL), math.floor(self.high / step + _EQUAL)
        numbers = range(first, last + 1)
        return [Tick(number * step, _label(number * step, step)) for number in numbers]


def fit_axis(values: Iterable[float], pixels: tuple[float, float], *, from_zero: bool) -> Axis:
    """Return an axis that spans some values, with a margin around them.

    Args:
        values: at least one value, all finite.
        pixels: where the axis starts and ends.
        from_zero: begin the axis at 0, unless a value is negative.
    """
    numbers = [*values, *([0.0] if from_zero else [])]
    low, high = min(numbers), max(numbers)
    size = max(abs(low), abs(high))
    if high - low <= size * _EQUAL:
        margin = size * _MARGIN_OF_ONE_VALUE or 1.0
    else:
        margin = (high - low) * _MARGIN
    margin = max(margin, _MIN_MARGIN)
    return Axis(low if from_zero and low == 0 else low - margin, high + margin, *pixels)


def _label(value: float, step: float) -> str:
    """Write a tick with enough digits to distinguish it from the next."""
    if value == 0:
        return "0"
    exponent = _exponent(step)
    if exponent >= _MIN_EXPONENT and abs(value) < _LARGE:
        return f"{value:,.{max(0, -exponent)}f}"
    digits = max(0, _exponent(abs(value)) - exponent)
    mantissa, power = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(power)}"


def _exponent(value: float) -> int:
    """Return the power of ten of a value's first digit, allowing for rounding errors."""
    return math.floor(math.log10(value) + _EQUAL)
