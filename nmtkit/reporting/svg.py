"""Line plots as SVG elements, for a page that holds their `style`, or as files of their own.

Curves differ by colour and by dashes. The colours are after Okabe and Ito, "Color Universal
Design" (2008), which colour-blind readers can tell apart; some are darker on white, or lighter on
black, for the sake of contrast.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from nmtkit.reporting.axis import Axis, spanning

PALETTE = """\
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1c2024; --muted: #5b646e; --line: #d9dee3; --raised: #f6f8fa;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --text: #e8eaed; --muted: #a3acb5; --line: #363d44; --raised: #1d2125;
  }
}
"""
"""What a page calls its own colours, on white and on black."""

_ON_WHITE = ("#0072b2", "#d55e00", "#009e73", "#b0558a", "#333333", "#a07d00")
_ON_BLACK = ("#56b4e9", "#f28c4a", "#2fc79a", "#e0a0c8", "#e6e6e6", "#f0e442")
_DASHES = ("none", "7 4", "2 3", "10 3 2 3", "16 5")

# Pixels.
_WIDTH, _LEFT, _RIGHT = 640, 68, 628
_HEIGHT, _TITLE, _BELOW = 250, 36, 42
_LEGEND_ROW, _SWATCH, _CHARACTER, _GAP = 20, 36, 7.4, 20
_TICK, _RADIUS = 5, 2.6

_TICKS_ACROSS, _TICKS_UP = 7, 6
_LONGEST_NAME = 70  # characters that fit into a row of the legend
_MAX_DOTS = 60
"""A curve of more points than these has no dot at each."""


Points = Sequence[tuple[float, float]]
"""Places across and heights."""


@dataclass(frozen=True)
class Curve:
    """Points from left to right; one whose height is not finite is a gap."""

    name: str
    points: Points

    @property
    def finite(self) -> Points:
        """The points that can be drawn."""
        return [point for point in self.points if math.isfinite(point[1])]


@dataclass(frozen=True)
class Plot:
    """Curves over updates, or over something else that begins at 0.

    Attributes:
        title: what is drawn, and its unit.
        curves: one a run; a run without points keeps its place, and with it its colour.
        from_zero: heights begin at 0.
        across: what the curves are over.
    """

    title: str
    curves: Sequence[Curve]
    from_zero: bool
    across: str = "update"


def draw(plot: Plot) -> str:
    """Return a plot with at least one finite point as an SVG element."""
    drawn = {number: curve for number, curve in enumerate(plot.curves) if curve.finite}
    names = {number: curve.name for number, curve in drawn.items()}
    legend = list(_legend(names)) if len(plot.curves) > 1 else []
    top = _TITLE + _LEGEND_ROW * len(legend)
    points = [point for curve in drawn.values() for point in curve.finite]
    across = spanning((x for x, _ in points), (_LEFT, _RIGHT), from_zero=True)
    up = spanning((y for _, y in points), (top + _HEIGHT, top), from_zero=plot.from_zero)
    title = escape(plot.title)
    view = f"0 0 {_WIDTH} {top + _HEIGHT + _BELOW}"
    elements = [
        f'<svg class="plot" viewBox="{view}" role="img" aria-label="{title}">',
        f'<text class="title" x="{_LEFT}" y="18">{title}</text>',
        *(entry for row in legend for entry in row),
        *_frame(across, up, plot.across),
        *(_curve(number, curve, across, up, plot.across) for number, curve in drawn.items()),
        "</svg>",
    ]
    return "\n".join(elements)


def draw_alone(plot: Plot) -> str:
    """Return a plot with at least one finite point as an SVG file of its own."""
    opening, elements = draw(plot).split(">", 1)
    ground = ".plot { background: var(--page); font-family: sans-serif; }"
    return (
        f'{opening} xmlns="http://www.w3.org/2000/svg">\n'
        f"<style>\n{PALETTE}{style()}\n{ground}\n</style>{elements}\n"
    )


def style() -> str:
    """Return the style sheet of plots; a page gives --text, --muted and --line."""
    return "\n".join(
        [
            ".plot { display: block; width: 100%; height: auto; font-size: 13px; }",
            ".plot text { fill: var(--muted); }",
            ".plot .title { fill: var(--text); font-size: 15px; font-weight: 600; }",
            ".plot .name { fill: var(--text); }",
            ".plot .frame { fill: none; stroke: var(--line); }",
            ".plot .grid { stroke: var(--line); stroke-width: 0.6; }",
            ".plot .curve path { fill: none; stroke: currentColor; stroke-width: 1.8; "
            "stroke-linejoin: round; }",
            ".plot .curve circle { fill: currentColor; }",
            ".plot .curve:hover path { stroke-width: 3; }",
            *_colours(_ON_WHITE),
            "@media (prefers-color-scheme: dark) {",
            *_colours(_ON_BLACK),
            "}",
        ]
    )


def _colours(colours: Sequence[str]) -> list[str]:
    return [f".colour-{number} {{ color: {colour}; }}" for number, colour in enumerate(colours)]


def _group(number: int, content: str) -> str:
    """Give something the colour and the dashes of a curve."""
    colour, dashes = number % len(_ON_WHITE), _DASHES[number % len(_DASHES)]
    return f'<g class="curve colour-{colour}" stroke-dasharray="{dashes}">{content}</g>'


def _legend(names: Mapping[int, str]) -> Iterator[list[str]]:
    """Yield the rows of a legend: entries next to each other as far as there is room."""
    row: list[str] = []
    x: float = _LEFT
    y = _TITLE
    for number, name in names.items():
        text = _shortened(name)
        width = _SWATCH + _CHARACTER * len(text)
        if row and x + width > _RIGHT:
            yield row
            row, x, y = [], _LEFT, y + _LEGEND_ROW
        row.append(_entry(number, text, x, y))
        x += width + _GAP
    yield row


def _entry(number: int, text: str, x: float, y: float) -> str:
    swatch = _group(number, f'<path d="M{x:.1f},{y} h{_SWATCH - 6}"/>')
    return f'{swatch}<text class="name" x="{x + _SWATCH:.1f}" y="{y + 4}">{escape(text)}</text>'


def _shortened(name: str) -> str:
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[: half - 3]}...{name[-half:]}"


def _frame(across: Axis, up: Axis, over: str) -> Iterator[str]:
    """Yield the frame, its grid, and what the ticks say."""
    for tick in up.ticks(_TICKS_UP, least_step=0):
        y = up.place(tick.value)
        yield f'<path class="grid" d="M{_LEFT},{y:.1f} H{_RIGHT}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick.label}</text>'
    for tick in across.ticks(_TICKS_ACROSS, least_step=1):
        x = across.place(tick.value)
        yield f'<path class="frame" d="M{x:.1f},{up.start} v{_TICK}"/>'
        yield (f'<text x="{x:.1f}" y="{up.start + 18}" text-anchor="middle">{tick.label}</text>')
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text x="{middle}" y="{up.start + 35}" text-anchor="middle">{escape(over)}</text>'
    yield (
        f'<rect class="frame" x="{_LEFT}" y="{up.end}" width="{_RIGHT - _LEFT}" '
        f'height="{_HEIGHT}"/>'
    )


def _curve(number: int, curve: Curve, across: Axis, up: Axis, over: str) -> str:
    """Draw the lines between gaps, and the points that are alone, or all if they are few."""
    has_dots = len(curve.points) <= _MAX_DOTS
    lines, dots = [], []
    for is_line, part in groupby(curve.points, lambda point: math.isfinite(point[1])):
        points = list(part)
        if is_line:
            places = [f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in points]
            lines.append("M" + " ".join(places))
        if is_line and (has_dots or len(points) == 1):
            dots += [_dot(curve.name, point, across, up, over) for point in points]
    return _group(number, f'<path d="{"".join(lines)}"/>{"".join(dots)}')


def _dot(name: str, point: tuple[float, float], across: Axis, up: Axis, over: str) -> str:
    """Draw a point that says what it is when one points to it."""
    x, value = point
    place = f'cx="{across.place(x):.1f}" cy="{up.place(value):.1f}" r="{_RADIUS}"'
    title = escape(f"{name}, {over} {x:,}: {value:.5g}")
    return f"<circle {place}><title>{title}</title></circle>"
