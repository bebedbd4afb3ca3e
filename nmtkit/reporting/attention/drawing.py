"""SVG drawings of a selection, black on white, for papers.

Lines are drawn as in the paper's figures 3 to 5: queries on the left, keys on the right, one colour
per head. The opacity of a line is the weight, or its square root if one word is selected.

The first five colours are based on Okabe and Ito, "Color Universal Design" (2008), so that
colour-blind readers can distinguish them. The legend also numbers the heads.
"""

import math
from collections.abc import Iterator, Sequence

from nmtkit.reporting.attention.selection import Selection
from nmtkit.reporting.svg_text import INK, MUTED, PAPER, columns, xml_text

# Pixels.
_ROW, _CHARACTER, _CAPTION_CHARACTER, _GAP = 22, 9, 7.5, 10
_LINES_WIDTH = 260
"""The width of the area of the lines, between the two columns of words."""
_CELL = 22
_CAPTION = 30
_STEP = 2
"""The vertical distance between the lines of two heads, so that none hides another."""
_MARK = 9
"""The width of the mark of a head's weight, next to a word."""
_MIN_MARK = 0.5
"""The smallest width of a mark, if there are many heads."""
_SWATCH = 30
"""The width of a head's number in the legend."""
_NUM_SHADES, _SHADE = 20, 6
"""The number of squares of a scale of weights, and their side."""

_MIN_WEIGHT, _MIN_WEIGHT_OF_WORD = 0.02, 0.005
"""Smaller weights are not drawn; the second is for the lines of one word."""

# One colour per head, on white and on black.
_ON_WHITE = (
    "#0072b2", "#d55e00", "#009e73", "#b0558a", "#a07d00", "#6a4fc9", "#8c564b", "#c81e3a",
    "#4a9fd8", "#ec8a3c", "#57a83f", "#d264b6", "#7c8c00", "#8d79de", "#917a72", "#159999",
)  # fmt: skip
_ON_BLACK = (
    "#56b4e9", "#f28c4a", "#2fc79a", "#e0a0c8", "#e3c94a", "#a996ff", "#c99a8b", "#ff6b7d",
    "#9fd4f5", "#ffc08f", "#98e08b", "#ffb3e1", "#c6d64f", "#cfc4ff", "#d8c3bc", "#5fdcdc",
)  # fmt: skip

_STYLE = (
    f"text {{ font: 15px system-ui, 'DejaVu Sans', 'Noto Sans', sans-serif; fill: {INK}; }} "
    "text.chosen { font-weight: bold; } .space { fill-opacity: 0.4; } "
    f"text.caption {{ font-size: 13px; fill: {MUTED}; }}"
)


def draw(selection: Selection, drawing: str) -> str:
    """Return an SVG file.

    Args:
        selection: what to draw.
        drawing: "lines" or "matrix".
    """
    width, height, elements = _matrix(selection) if drawing == "matrix" else _lines(selection)
    width = max(width, _GAP + _caption_width(selection.title))
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{xml_text(selection.title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>',
        f'<text class="caption" x="{_GAP}" y="18">{xml_text(selection.title)}</text>',
        *elements,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def color_of(head: int) -> str:
    """Return the colour of a head on white; heads count from 1, and every 16 colours repeat."""
    return _ON_WHITE[(head - 1) % len(_ON_WHITE)]


def color_variables() -> str:
    """Return a style sheet that defines --head-1, --head-2, ... and --num-head-colors."""
    light, dark = (
        "".join(f"--head-{number}: {name}; " for number, name in enumerate(colors, 1))
        for colors in (_ON_WHITE, _ON_BLACK)
    )
    lines = [
        f":root {{ --num-head-colors: {len(_ON_WHITE)}; {light}}}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}",
    ]
    return "\n".join(lines) + "\n"


def _lines(selection: Selection) -> tuple[float, float, list[str]]:
    """Draw lines between two columns; return width, height and elements."""
    legend = list(_legend(selection.heads))
    heading = _CAPTION + _ROW * bool(legend)
    top = heading + _ROW
    rows, columns = selection.sides
    left = _GAP + _width([*selection.rows, rows])
    right = left + 2 * _GAP + _LINES_WIDTH
    end_of_legend = _GAP + _SWATCH * len(selection.heads)
    width = max(right + _width([*selection.columns, columns]), end_of_legend) + _GAP
    sides = [
        _caption(place, heading + _ROW / 2 + 5, anchor, text)
        for place, anchor, text in (
            (left, "end", rows),
            ((left + right) / 2, "middle", "attends to \u2192"),
            (right, "start", columns),
        )
    ]
    height = top + _ROW * max(len(selection.rows), len(selection.columns)) + _GAP
    words = [
        *_column(selection.rows, left, top, "end", selection.word),
        *_column(selection.columns, right, top, "start", None),
    ]
    heads = [_head(selection, index, left + _GAP, top) for index in range(len(selection.heads))]
    return width, height, [*legend, *sides, *heads, *words]


def _head(selection: Selection, index: int, left: float, top: float) -> str:
    """Draw the lines of a selected head; with a selected word, also marks at their ends."""
    num_heads, word = len(selection.heads), selection.word
    mark = 0.0 if word is None else min(_MARK, _LINES_WIDTH / 3 / num_heads)
    right = left + _LINES_WIDTH - mark * num_heads
    step = min(_STEP, _ROW / 2 / num_heads)
    first = top + _ROW / 2 + (index - (num_heads - 1) / 2) * step
    weights = selection.weights[index]
    color = color_of(selection.heads[index])
    elements = []
    min_weight = _MIN_WEIGHT if word is None else _MIN_WEIGHT_OF_WORD
    for row, column in (weights >= min_weight).nonzero().tolist():
        if word not in (None, row):
            continue
        weight = weights[row, column].item()
        strength = weight if word is None else _darkness(weight)
        start, end = first + _ROW * row, first + _ROW * column
        elements.append(
            f'<path d="M{left:.1f},{start:.1f} L{right:.1f},{end:.1f}" '
            f'stroke-opacity="{strength:.2f}" stroke-width="{1 + 2 * strength:.1f}"/>'
        )
        if word is not None:
            elements.append(
                f'<rect x="{right + mark * index:.1f}" y="{top + _ROW * column + 2}" '
                f'width="{max(_MIN_MARK, mark - 1):.1f}" height="{_ROW - 4}" stroke="none" '
                f'fill-opacity="{strength:.2f}"/>'
            )
    return f'<g stroke="{color}" fill="{color}">{"".join(elements)}</g>'


def _column(
    words: Sequence[str], x: float, top: float, anchor: str, chosen: int | None
) -> Iterator[str]:
    for index, word in enumerate(words):
        kind = ' class="chosen"' if index == chosen else ""
        y = top + _ROW * (index + 0.5) + 5
        yield f'<text x="{x:.1f}" y="{y:.0f}" text-anchor="{anchor}"{kind}>{_word(word)}</text>'


def _legend(heads: Sequence[int]) -> Iterator[str]:
    """Yield the numbers of the heads in their colours, if there are several."""
    if len(heads) == 1:
        return
    for index, head in enumerate(heads):
        x = _GAP + _SWATCH * index
        yield (
            f'<rect x="{x}" y="{_CAPTION}" width="{_SWATCH - 3}" height="16" '
            f'fill="{color_of(head)}" fill-opacity="0.3" stroke="{color_of(head)}"/>'
            f'<text x="{x + (_SWATCH - 3) / 2}" y="{_CAPTION + 13}" text-anchor="middle" '
            f'style="font-size: 12px">{head}</text>'
        )


def _matrix(selection: Selection) -> tuple[float, float, list[str]]:
    """Draw a square per pair of words, the mean of the heads; return width, height and elements."""
    left = _ROW + 2 * _GAP + _width(selection.rows)
    top = _CAPTION + _ROW + 2 * _GAP + _width(selection.columns)
    right = left + _CELL * len(selection.columns)
    bottom = top + _CELL * len(selection.rows)
    ink = color_of(selection.heads[0]) if len(selection.heads) == 1 else color_of(1)
    weights = selection.weights.mean(0)
    names = [
        f'<text x="{left - _GAP}" y="{top + _CELL * (index + 0.5) + 5:.0f}" text-anchor="end">'
        f"{_word(word)}</text>"
        for index, word in enumerate(selection.rows)
    ] + [
        f'<text transform="translate({left + _CELL * (index + 0.5) + 5:.1f},{top - _GAP}) '
        f'rotate(-90)">{_word(word)}</text>'
        for index, word in enumerate(selection.columns)
    ]
    cells = []
    for row, column in (weights >= _MIN_WEIGHT).nonzero().tolist():
        darkness = _darkness(weights[row, column].item())
        cells.append(
            f'<rect x="{left + _CELL * column}" y="{top + _CELL * row}" width="{_CELL}" '
            f'height="{_CELL}" fill="{ink}" fill-opacity="{darkness:.2f}"/>'
        )
    frame = (
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" fill="none" '
        'stroke="#d9dee3"/>'
    )
    rows = f"\u2190 {selection.sides[0]} (attends)"
    columns = f"{selection.sides[1]} (attended to) \u2192"
    sides = [
        f'<g transform="translate({_GAP + 10},{top}) rotate(-90)">'
        f"{_caption(0, 0, 'end', rows)}</g>",
        _caption(left, _CAPTION + 15, "start", columns),
    ]
    end, scale = _scale(left, bottom + _GAP, ink, len(selection.heads))
    # The margin is for the name of the last column.
    width = max(right + 2 * _GAP, end + _GAP, left + _caption_width(columns))
    bottom = max(bottom, top + _caption_width(rows))
    return width, bottom + _ROW + 2 * _GAP, [*cells, frame, scale, *sides, *names]


def _scale(left: float, top: float, ink: str, num_heads: int) -> tuple[float, str]:
    """Draw the scale of weights from 0 to 1; return its right end and its element."""
    label = "weight" if num_heads == 1 else f"mean weight of {num_heads} heads"
    start = left + 2 * _GAP
    end = start + _SHADE * _NUM_SHADES
    shades = [
        f'<rect x="{start + _SHADE * shade}" y="{top + 6}" width="{_SHADE}" height="12" '
        f'fill-opacity="{_darkness((shade + 0.5) / _NUM_SHADES):.2f}"/>'
        for shade in range(_NUM_SHADES)
    ]
    texts = [
        _caption(left, top + 17, "start", "0"),
        _caption(end + _GAP, top + 17, "start", "1"),
        _caption(end + 3 * _GAP, top + 17, "start", label),
    ]
    element = f'<g class="scale" fill="{ink}">{"".join(shades)}</g>{"".join(texts)}'
    return end + 3 * _GAP + _caption_width(label), element


def _caption(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="caption" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _word(word: str) -> str:
    """Return the content of a text element: a word, whose marks U+2581 are light."""
    return xml_text(word).replace("\u2581", '<tspan class="space">\u2581</tspan>')


def _darkness(weight: float) -> float:
    """Return the opacity of a weight: its square root, so that small weights are visible."""
    return math.sqrt(weight)


def _width(words: Sequence[str]) -> float:
    """Estimate the width of the widest word."""
    return _CHARACTER * max(map(columns, words))


def _caption_width(text: str) -> float:
    """Estimate the width of a caption."""
    return _CAPTION_CHARACTER * columns(text)
