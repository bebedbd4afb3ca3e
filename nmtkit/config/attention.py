"""Settings of `nmtkit attention`; schema.py names the other modules of settings."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from nmtkit.config.setting import DirectionConfig, common, setting


@dataclass(frozen=True, kw_only=True)
class ViewConfig(DirectionConfig):
    """Input and output."""

    format: str = common(
        "html",
        "Format of the output. html: a page for a browser; json: an object per line; svg: a "
        "picture of one view.",
        choices=("html", "json", "svg"),
    )
    input_format: str = common(
        "text",
        "Format of the input. text: a source per line, optionally with a tab and its translation; "
        "json: an object per line with source and translation, as `nmtkit translate` writes it.",
        choices=("text", "json"),
    )
    translate: bool = common(False, "Translate each source with the model first.")
    max_weights: int = setting(
        20_000_000,
        "Largest number of attention weights per line and per page. A weight takes 3 bytes in a "
        "page, 8 in JSON, and 60 of memory while JSON is written.",
        minimum=1,
    )


_DRAWN: Mapping[str, Collection[bool | str]] = {"format": ("html", "svg")}
"""JSON has everything."""

_drawn = partial(common, only_with=_DRAWN)


@dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """View of a picture, and first view of a page."""

    sentence: int = _drawn(1, "Number of the line, from 1.", minimum=1)
    attention: str = _drawn(
        "auto",
        "Kind of attention. encoder: of the source to itself; decoder: of the translation to "
        "earlier tokens; memory: of the translation to the source; auto: memory if the line has a "
        "translation, else encoder.",
        choices=("auto", "encoder", "decoder", "memory"),
    )
    layer: int = _drawn(0, "Number of the layer, from 1; auto = the one that aligns.", zero="auto")
    heads: str = _drawn("", "Heads, from 1, such as 5,6.  [default: all]", metavar="LIST")
    word: str = _drawn(
        "",
        "Show only the lines of this word: the word, or its position from 1.",
        metavar="WORD|NUMBER",
        only_with={**_DRAWN, "drawing": ("auto", "lines")},
    )
    drawing: str = _drawn(
        "auto",
        "Kind of picture. lines: between two columns of words, a colour per head; matrix: a square "
        "per pair of words, the mean of the heads; auto: lines in SVG or with --word, else matrix.",
        choices=("auto", "lines", "matrix"),
    )
    join_subwords: bool = _drawn(
        False,
        "Show words instead of subwords: the weights on the subwords of a word are summed, those "
        "from its subwords averaged.",
    )
