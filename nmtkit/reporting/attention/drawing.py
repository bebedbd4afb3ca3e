"""SVG drawings of attention: pictures of a selection, for papers, and drawings for the page.

A drawing of the page has no weights: its script adds them as `_head` and `_squares` do here.

Lines are drawn as in the paper's figures 3 to 5: queries on the left, keys on the right, one colour
per head. The opacity of a line is the weight, or its square root if one word is selected.

The first five colours are based on Okabe and Ito, "Color Universal Design" (2008), so that
colour-blind readers can distinguish them. The legend also numbers the heads.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from torch import Tensor

from nmtkit.config.attention import SelectionConfig
from nmtkit.config.model import AligningAttention, aligning_layer
from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.sentences import AttentionMap, Sentence
from nmtkit.reporting.svg import INK, MUTED, PAPER, xml_text
from nmtkit.units import counted

_SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "memory": ("target", "source"),
}
"""The sentences that attend, and that are attended to."""


@dataclass(frozen=True)
class Selection:
    """Attention weights to draw.

    Attributes:
        kind: "encoder", "decoder" or "memory".
        layer: the layer, counted from 1.
        num_layers: number of layers of the model's stack.
        heads: the heads, counted from 1, ascending.
        num_heads: number of heads of the model.
        rows, columns: the words or subwords that attend, and that are attended to.
        weights: (heads, rows, columns).
        word: index of the only row whose lines are drawn; None = all rows.
    """

    kind: str
    layer: int
    num_layers: int
    heads: tuple[int, ...]
    num_heads: int
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Tensor
    word: int | None

    @property
    def title(self) -> str:
        """The caption: kind of attention, layer and heads."""
        numbers = ", ".join(map(str, self.heads))
        heads = f"head {numbers}" if len(self.heads) == 1 else f"heads {numbers}"
        if len(self.heads) == self.num_heads > 1:
            heads = f"all {self.num_heads} heads"
        kind = "cross-attention" if self.kind == "memory" else f"{self.kind} self-attention"
        return f"{kind}, layer {self.layer} of {self.num_layers}, {heads}"


def select(sentence: Sentence, config: SelectionConfig) -> Selection:
    """Select the attention weights that a configuration names.

    Raises:
        ConfigError: the sentence has no such attention, layer, head or word.
    """
    attention = _attention(sentence, config.attention)
    num_layers, num_heads = attention.weights.shape[:2]
    last_but_one = AligningAttention(aligning_layer(num_layers), head=None, is_shifted=False)
    default = attention.aligning or last_but_one
    layer = config.layer or default.layer + 1
    if layer > num_layers:
        raise ConfigError(
            f"layer ({layer}): {attention.kind} attention has {counted(num_layers, 'layers')}; "
            f"give 1 to {num_layers} [selection.layer]"
        )
    given = {int(head) for head in config.heads.split(",") if head}
    if not given and not config.layer and default.head is not None:
        given = {default.head + 1}
    heads = tuple(sorted(given)) or tuple(range(1, num_heads + 1))
    if heads[-1] > num_heads:
        raise ConfigError(
            f"heads ({heads[-1]}): the model has {counted(num_heads, 'heads')}; give numbers "
            f"from 1 to {num_heads} [selection.heads]"
        )
    is_joined = config.join_subwords
    rows = attention.rows.words if is_joined else attention.rows.pieces
    weights = (attention.joined if is_joined else attention.weights)[layer - 1]
    return Selection(
        kind=attention.kind,
        layer=layer,
        num_layers=num_layers,
        heads=heads,
        num_heads=num_heads,
        rows=rows,
        columns=attention.columns.words if is_joined else attention.columns.pieces,
        weights=weights[[head - 1 for head in heads]],
        word=_row_index(config.word, rows),
    )


def _attention(sentence: Sentence, kind: str) -> AttentionMap:
    if kind == "auto":
        return sentence.attentions[-1]
    for attention in sentence.attentions:
        if attention.kind == kind:
            return attention
    raise ConfigError(
        f"attention ({kind}): the line has no translation; add it after a tab, or add "
        "--translate [selection.attention]"
    )


def _row_index(word: str, rows: Sequence[str]) -> int | None:
    """Return the index of the row with a text, or at a position counted from 1."""
    if not word:
        return None
    words = [row.strip("\u2581") for row in rows]
    found = [index for index, row in enumerate(words) if row == word]
    numbers = ", ".join(str(index + 1) for index in found)
    at = f"word ({word!r}) is at position{'s' * (len(found) > 1)} {numbers}"
    if word.isdecimal() and 1 <= int(word) <= len(rows):
        index = int(word) - 1
        if not found or index in found:
            return index
        raise ConfigError(
            f"{at}, but position {index + 1} has {words[index]!r}; give the position with a zero "
            f"in front, such as 0{found[0] + 1} [selection.word]"
        )
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{at}; give one of these numbers [selection.word]")
    raise ConfigError(
        f"word ({word!r}) is none of the {len(rows)} that attend; {suggestion(word, rows)} "
        "[selection.word]"
    )


# Pixels.
_LARGEST_ROW, _SMALLEST_ROW, _LONGEST_SIDE = 22, 12, 720
_LARGEST_FONT = 15
_CHARACTER, _CAPTION_CHARACTER, _GAP = 0.6, 7.5, 10
"""The widths of a letter: of a word, in units of its font; of a caption, in pixels."""
_WIDER = 0.6
"""What a wide letter has more than others, in letters."""
_LINES_WIDTH = 260
"""The width of the area of the lines, between the two columns of words."""
_CAPTION, _LEGEND, _HEADING = 30, 22, 22
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
_SCALE_LABEL = _SHADE * _NUM_SHADES + 5 * _GAP
"""The distance of a scale's label from the scale's beginning."""

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
    f"text {{ font-family: system-ui, 'DejaVu Sans', 'Noto Sans', sans-serif; fill: {INK}; }} "
    "text.chosen { font-weight: bold; } .space { fill-opacity: 0.4; } .frame { stroke: #d9dee3; } "
    f"text.caption {{ font-size: 13px; fill: {MUTED}; }}"
)


@dataclass(frozen=True)
class Frame:
    """A drawing without its weights, whose colour is that of the drawing: `currentColor`.

    Attributes:
        size: the height of a row; in a matrix, the width of a column, too.
        left, right, top: where the weights are.
        width, height: the size of the whole drawing.
        elements: the words, the names of the sides and, of a matrix, the scale.
    """

    size: int
    left: float
    right: float
    top: float
    width: float
    height: float
    elements: Sequence[str]


def draw(selection: Selection, drawing: str) -> str:
    """Return an SVG file.

    Args:
        selection: what to draw.
        drawing: "lines" or "matrix".
    """
    heads = selection.heads
    legend: list[str] = []
    if drawing == "matrix":
        label = "weight" if len(heads) == 1 else f"mean weight of {len(heads)} heads"
        frame = _matrix(selection.kind, selection.rows, selection.columns, label)
        weights = [*_squares(selection.weights.mean(0), frame)]
    else:
        legend = [*_legend(heads)]
        frame = _lines(selection.kind, selection.rows, selection.columns, selection.word)
        weights = [_head(selection, index, frame) for index in range(len(heads))]
    top = _CAPTION + _LEGEND * bool(legend)
    width = max(
        frame.width,
        2 * _GAP + _SWATCH * len(heads) if legend else 0,
        _GAP + _caption_width(selection.title),
    )
    title = xml_text(selection.title)
    elements = [
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{top + frame.height:.0f}" fill="{PAPER}"/>',
        _caption(_GAP, 18, "start", title),
        *legend,
        f'<g fill="currentColor" transform="translate(0,{top})">',
        *weights,
        *frame.elements,
        "</g>",
    ]
    color = color_of(heads[0] if len(heads) == 1 else 1)
    attributes = f'xmlns="http://www.w3.org/2000/svg" role="img" color="{color}"'
    return _svg(attributes, frame.size, (width, top + frame.height), elements)


def without_weights(drawing: str, kind: str, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Return a drawing as an SVG element to whose group "weights" a script adds the weights.

    Args:
        drawing: "lines" or "matrix".
        kind: "encoder", "decoder" or "memory".
        rows, columns: the words that attend, and that are attended to.
    """
    if drawing == "matrix":
        frame = _matrix(kind, rows, columns, "weight")
    else:
        frame = _lines(kind, rows, columns, None)
    place = f'data-size="{frame.size}" data-left="{frame.left}" data-right="{frame.right}"'
    attributes = f'class="{drawing}" {place} data-top="{frame.top}"'
    elements = ['<g class="weights" fill="currentColor"/>', *frame.elements]
    return _svg(attributes, frame.size, (frame.width, frame.height), elements)


def _svg(attributes: str, size: int, area: tuple[float, float], elements: Sequence[str]) -> str:
    """Return an SVG element with the font of rows of a height."""
    width, height = (f"{side:.0f}" for side in area)
    place = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    opening = f'<svg {attributes} {place} font-size="{_font(size)}">'
    return "\n".join([opening, *elements, "</svg>"]) + "\n"


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


def _lines(kind: str, rows: Sequence[str], columns: Sequence[str], chosen: int | None) -> Frame:
    """Return the frame of lines between two columns of words."""
    size = _row_size(rows, columns)
    names = _SIDES[kind]
    left = _GAP + max(_width(rows, size), _caption_width(names[0]))
    right = left + 2 * _GAP + _LINES_WIDTH
    sides = [
        _caption(place, _HEADING / 2 + 5, anchor, text)
        for place, anchor, text in (
            (left, "end", names[0]),
            ((left + right) / 2, "middle", "attends to \u2192"),
            (right, "start", names[1]),
        )
    ]
    words = [
        *_column("row", rows, left, _HEADING, size, chosen),
        *_column("column", columns, right, _HEADING, size, None),
    ]
    return Frame(
        size,
        left + _GAP,
        right - _GAP,
        _HEADING,
        right + max(_width(columns, size), _caption_width(names[1])) + _GAP,
        _HEADING + size * max(len(rows), len(columns)) + _GAP,
        [*sides, *words],
    )


def _head(selection: Selection, index: int, frame: Frame) -> str:
    """Draw the lines of a selected head; with a selected word, also marks at their ends."""
    num_heads, word, size = len(selection.heads), selection.word, frame.size
    mark = 0.0 if word is None else min(_MARK, _LINES_WIDTH / 3 / num_heads)
    right = frame.right - mark * num_heads
    step = min(_STEP, size / 2 / num_heads)
    first = frame.top + size / 2 + (index - (num_heads - 1) / 2) * step
    weights = selection.weights[index]
    color = color_of(selection.heads[index])
    elements = []
    min_weight = _MIN_WEIGHT if word is None else _MIN_WEIGHT_OF_WORD
    for row, column in (weights >= min_weight).nonzero().tolist():
        if word not in (None, row):
            continue
        weight = weights[row, column].item()
        strength = weight if word is None else _darkness(weight)
        start, end = first + size * row, first + size * column
        elements.append(
            f'<path d="M{frame.left:.1f},{start:.1f} L{right:.1f},{end:.1f}" '
            f'stroke-opacity="{strength:.2f}" stroke-width="{1 + 2 * strength:.1f}"/>'
        )
        if word is not None:
            elements.append(
                f'<rect x="{right + mark * index:.1f}" y="{frame.top + size * column + 2}" '
                f'width="{max(_MIN_MARK, mark - 1):.1f}" height="{size - 4}" stroke="none" '
                f'fill-opacity="{strength:.2f}"/>'
            )
    return f'<g stroke="{color}" fill="{color}">{"".join(elements)}</g>'


def _column(
    side: str, words: Sequence[str], x: float, top: float, size: int, chosen: int | None
) -> Iterator[str]:
    anchor = "end" if side == "row" else "start"
    for index, word in enumerate(words):
        kind = ' class="chosen"' if index == chosen else ""
        y = top + size * (index + 0.5) + _font(size) / 3
        yield (
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind} data-{side}="{index}">'
            f"{_word(word)}</text>"
        )


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


def _matrix(kind: str, rows: Sequence[str], columns: Sequence[str], label: str) -> Frame:
    """Return the frame of a matrix, with a scale of weights that has a label."""
    size = _row_size(rows, columns)
    left = _HEADING + 2 * _GAP + _width(rows, size)
    top = _HEADING + 2 * _GAP + _width(columns, size)
    right, bottom = left + size * len(columns), top + size * len(rows)
    attends = f"\u2190 {_SIDES[kind][0]} (attends)"
    attended = f"{_SIDES[kind][1]} (attended to) \u2192"
    elements = [
        f'<rect class="frame" x="{left}" y="{top}" width="{right - left}" '
        f'height="{bottom - top}" fill="none"/>',
        *_scale(left, bottom + _GAP, label),
        *_upright(_GAP + 10, top, [_caption(0, 0, "end", attends)]),
        _caption(left, 15, "start", attended),
        *_column("row", rows, left - _GAP, top, size, None),
        *_upright(left, top - _GAP, _column("column", columns, 0, 0, size, None)),
    ]
    # The margin is for the name of the last column.
    width = max(
        right + 2 * _GAP,
        left + _SCALE_LABEL + _caption_width(label) + _GAP,
        left + _caption_width(attended),
    )
    height = max(bottom, top + _caption_width(attends)) + _HEADING + 2 * _GAP
    return Frame(size, left, right, top, width, height, elements)


def _upright(x: float, y: float, elements: Iterable[str]) -> Iterator[str]:
    """Yield elements that are turned, so that texts are read from below."""
    yield f'<g transform="translate({x},{y}) rotate(-90)">'
    yield from elements
    yield "</g>"


def _squares(weights: Tensor, frame: Frame) -> Iterator[str]:
    """Yield a square per pair of words."""
    for row, column in (weights >= _MIN_WEIGHT).nonzero().tolist():
        x, y = frame.left + frame.size * column, frame.top + frame.size * row
        yield (
            f'<rect x="{x}" y="{y}" width="{frame.size}" height="{frame.size}" '
            f'fill-opacity="{_darkness(weights[row, column].item()):.2f}"/>'
        )


def _scale(left: float, top: float, label: str) -> Iterator[str]:
    """Yield the scale of weights from 0 to 1, and its label."""
    yield '<g class="scale" fill="currentColor">'
    for shade in range(_NUM_SHADES):
        x = left + 2 * _GAP + _SHADE * shade
        yield (
            f'<rect x="{x}" y="{top + 6}" width="{_SHADE}" height="12" '
            f'fill-opacity="{_darkness((shade + 0.5) / _NUM_SHADES):.2f}"/>'
        )
    yield "</g>"
    for x, text in ((0, "0"), (_SCALE_LABEL - 2 * _GAP, "1"), (_SCALE_LABEL, label)):
        yield _caption(left + x, top + 17, "start", text)


def _caption(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="caption" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _word(word: str) -> str:
    """Return the content of a text element: a word, whose marks U+2581 are light."""
    return xml_text(word).replace("\u2581", '<tspan class="space">\u2581</tspan>')


def _darkness(weight: float) -> float:
    """Return the opacity of a weight: its square root, so that small weights are visible."""
    return math.sqrt(weight)


def _row_size(rows: Sequence[str], columns: Sequence[str]) -> int:
    """Return the height of a row: smaller for many words."""
    fitting = _LONGEST_SIDE // max(len(rows), len(columns))
    return max(_SMALLEST_ROW, min(_LARGEST_ROW, fitting))


def _font(size: int) -> int:
    """Return the font size of words in rows of a height."""
    return min(_LARGEST_FONT, size - 2)


def _width(words: Sequence[str], size: int) -> float:
    """Estimate the width of the widest word in rows of a height; capitals, m and w are wide."""
    letters = (
        _letters(word) + _WIDER * sum(letter.isupper() or letter in "mw" for letter in word)
        for word in words
    )
    return math.ceil(_CHARACTER * _font(size) * max(letters))


def _caption_width(text: str) -> float:
    """Estimate the width of a caption."""
    return _CAPTION_CHARACTER * _letters(text)


def _letters(text: str) -> int:
    """Estimate the width of a text in letters; the reader's font is unknown."""
    base = [letter for letter in text if not combining(letter)]
    return len(base) + sum(east_asian_width(letter) in "WF" for letter in base)
