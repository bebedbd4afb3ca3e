"""Line plots as SVG elements for a page with plot.css."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

PAPER, INK, MUTED = "#ffffff", "#1c2024", "#5b646e"
"""The background of pictures, their text, and their captions."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Source: XML 1.0, section 2.2."""


def xml_text(text: str) -> str:
    """Escape a text; a character that XML cannot hold becomes U+FFFD."""
    return escape(visible_text(text))


def visible_text(text: str) -> str:
    """Replace characters that XML cannot hold by U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)


_MARGIN = 0.04
_MIN_MARGIN = 1e-12
"""Floats keep enough digits on the shortest axis."""

_MARGIN_OF_ONE_VALUE = 0.1
_EQUAL = 1e-9
"""Values whose relative difference is at most this count as equal."""

_MANTISSAS = (1, 2, 5, 10)
_MIN_EXPONENT = -5  # smaller steps between ticks are written with an exponent
_LARGE_TICK = 1e7  # ticks from this size on are written with an exponent


Tick = tuple[float, str]
"""A value on an axis, and its label."""


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
        return [(number * step, _label(number * step, step)) for number in numbers]


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
    if exponent >= _MIN_EXPONENT and abs(value) < _LARGE_TICK:
        return f"{value:,.{max(0, -exponent)}f}"
    digits = max(0, _exponent(abs(value)) - exponent)
    mantissa, power = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(power)}"


def _exponent(value: float) -> int:
    """Return the power of ten of a value's first digit, allowing for rounding errors."""
    return math.floor(math.log10(value) + _EQUAL)


_NUM_COLORS = 6
"""Colours of curves in plot.css."""
_DASHES = ("none", "7 4", "2 3", "10 3 2 3", "16 5")

# Pixels.
_WIDTH, _LEFT, _RIGHT = 520, 68, 508
_HEIGHT, _TITLE, _BELOW = 250, 36, 42
_LEGEND_ROW, _SWATCH, _CHARACTER, _GAP = 20, 36, 8, 20
_TICK, _RADIUS = 5, 2.6

_X_TICKS, _Y_TICKS = 7, 6
_FIVE_DIGITS, _LARGE = 1e4, 1e12
"""Values from the first to below the second are written without a fraction or an exponent."""
_MAX_NAME = 50  # characters that fit into a row of the legend
_MAX_DOTS = 60
"""Curves with more points are drawn without dots."""


Points = Sequence[tuple[float, float]]
"""Pairs (x, y)."""


@dataclass(frozen=True)
class Curve:
    """Points by ascending x; a point whose y is not finite is a gap."""

    name: str
    points: Points

    @property
    def finite(self) -> Points:
        """The points whose y is finite."""
        return [point for point in self.points if math.isfinite(point[1])]


@dataclass(frozen=True)
class Plot:
    """A line plot; x begins at 0.

    Attributes:
        title: the quantity and its unit.
        curves: one per run, also for a run without points, so that colours stay the same.
        from_zero: begin the y axis at 0.
        x_label: the unit of the x axis, in the plural.
        categories: names of x = 0, 1, ...; empty if x is a quantity.
    """

    title: str
    curves: Sequence[Curve]
    from_zero: bool
    x_label: str = "updates"
    categories: Sequence[str] = ()

    def x_axis(self) -> Axis:
        """Return the axis on which all curves fit."""
        if self.categories:
            half = 0.5
            return Axis(-half, len(self.categories) - half, _LEFT, _RIGHT)
        points = (x for curve in self.curves for x, _ in curve.finite)
        return fit_axis(points, (_LEFT, _RIGHT), from_zero=True)

    def x_ticks(self, axis: Axis) -> list[Tick]:
        """Return the ticks of the x axis."""
        return [*enumerate(self.categories)] or axis.ticks(_X_TICKS, min_step=1)

    def x_text(self, x: float) -> str:
        """Write a value of the x axis; a script splits such texts at spaces."""
        return self.categories[int(x)] if self.categories else _rounded(x)


def draw(plot: Plot) -> str:
    """Return a plot with at least one finite point as an SVG element."""
    drawn = {number: curve for number, curve in enumerate(plot.curves) if curve.finite}
    names = {number: curve.name for number, curve in drawn.items()}
    legend = list(_legend(names)) if len(plot.curves) > 1 else []
    top = _TITLE + _LEGEND_ROW * len(legend)
    points = [point for curve in drawn.values() for point in curve.finite]
    x_axis = plot.x_axis()
    y_axis = fit_axis((y for _, y in points), (top + _HEIGHT, top), from_zero=plot.from_zero)
    title = escape(plot.title)
    view = f"0 0 {_WIDTH} {top + _HEIGHT + _BELOW}"
    elements = [
        f'<svg class="plot" viewBox="{view}" role="img" tabindex="0" aria-label="{title}" '
        f'data-x="{escape(plot.x_label)}">',
        f'<text class="title" x="0" y="18">{title}</text>',
        *(entry for row in legend for entry in row),
        *_frame(plot, x_axis, y_axis),
        *(_curve(number, plot, x_axis, y_axis) for number in drawn),
        "</svg>",
    ]
    return "\n".join(elements)


def _group(number: int, content: str, attributes: str = "") -> str:
    """Wrap elements in the colour and dashes of a curve."""
    color, dashes = number % _NUM_COLORS, _DASHES[number % len(_DASHES)]
    look = f'class="curve color-{color}" stroke-dasharray="{dashes}"'
    return f"<g {look}{attributes}>{content}</g>"


def _legend(names: Mapping[int, str]) -> Iterator[list[str]]:
    """Yield the rows of the legend, each with the entries that fit."""
    row: list[str] = []
    x: float = 0
    y = _TITLE
    for number, name in names.items():
        text = _shortened(name)
        width = _SWATCH + _CHARACTER * len(text)
        if row and x + width > _RIGHT:
            yield row
            row, x, y = [], 0, y + _LEGEND_ROW
        row.append(_entry(number, text, x, y))
        x += width + _GAP
    yield row


def _entry(number: int, text: str, x: float, y: float) -> str:
    swatch = _group(number, f'<path d="M{x:.1f},{y} h{_SWATCH - 6}"/>')
    return f'{swatch}<text class="name" x="{x + _SWATCH:.1f}" y="{y + 4}">{escape(text)}</text>'


def _shortened(name: str) -> str:
    half = _MAX_NAME // 2
    return name if len(name) <= _MAX_NAME else f"{name[: half - 3]}...{name[-half:]}"


def _frame(plot: Plot, x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Yield the grid, the ticks with their labels, and the frame."""
    for value, label in y_axis.ticks(_Y_TICKS, min_step=0):
        y = y_axis.pixel(value)
        yield f'<path class="grid" d="M{_LEFT},{y:.1f} H{_RIGHT}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    for value, label in plot.x_ticks(x_axis):
        x = x_axis.pixel(value)
        yield f'<path class="frame" d="M{x:.1f},{y_axis.start} v{_TICK}"/>'
        text = escape(label)
        kind = ' class="category"' if plot.categories else ""
        yield f'<text{kind} x="{x:.1f}" y="{y_axis.start + 18}" text-anchor="middle">{text}</text>'
    middle = (_LEFT + _RIGHT) / 2
    bottom = y_axis.start + 35
    yield f'<text x="{middle}" y="{bottom}" text-anchor="middle">{escape(plot.x_label)}</text>'
    yield (
        f'<rect class="frame" x="{_LEFT}" y="{y_axis.end}" width="{_RIGHT - _LEFT}" '
        f'height="{_HEIGHT}"/>'
    )


def _curve(number: int, plot: Plot, x_axis: Axis, y_axis: Axis) -> str:
    """Draw a line between gaps, and dots for isolated points, or for all points if few.

    The values of the line's points follow as text, for a script that displays them.
    """
    curve = plot.curves[number]
    has_dots = len(curve.points) <= _MAX_DOTS
    lines, dots = [], []
    for is_line, part in groupby(curve.points, lambda point: math.isfinite(point[1])):
        points = list(part)
        if is_line:
            pixels = [(f"{x_axis.pixel(x):.1f}", f"{y_axis.pixel(y):.1f}") for x, y in points]
            lines.append("M" + " ".join(f"{x},{y}" for x, y in pixels))
        if is_line and (has_dots or len(points) == 1):
            dots += [f'<circle cx="{x}" cy="{y}" r="{_RADIUS}"/>' for x, y in pixels]
    xs = " ".join(plot.x_text(x) for x, _ in curve.finite)
    ys = " ".join(_precise(y) for _, y in curve.finite)
    values = f' data-name="{escape(curve.name)}" data-x="{escape(xs)}" data-y="{ys}"'
    return _group(number, f'<path d="{"".join(lines)}"/>{"".join(dots)}', values)


def _precise(value: float) -> str:
    """Write a value with five digits, or all before the point."""
    return f"{value:,.0f}" if _FIVE_DIGITS <= abs(value) < _LARGE else f"{value:,.5g}"


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
