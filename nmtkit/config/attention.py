"""The sections of a recipe that looking at attention has; see schema.py for the rest."""

from dataclasses import dataclass

from nmtkit.config.setting import setting


@dataclass(frozen=True, kw_only=True)
class ViewConfig:
    """What is read and written."""

    format: str = setting(
        "html",
        "Format of the output. html: everything in one page for a browser; json: everything, an "
        "object a line; svg, png: a picture of one view.",
        choices=("html", "json", "svg", "png"),
    )
    input_format: str = setting(
        "text",
        "Format of the input. text: a source a line, and behind a tab its translation, if there is "
        "one; json: an object a line with source and translation, as translate writes it.",
        choices=("text", "json"),
    )
    translate: bool = setting(False, "Have the model translate each source first.")
    max_weights: int = setting(
        20_000_000,
        "Attention weights of a line, and of a page, at most; in a page each takes 3 bytes, in "
        "JSON 8, and 60 of memory while it is written.",
        minimum=1,
    )


@dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """What a picture shows, and what a page shows first."""

    sentence: int = setting(1, "Which line, from 1.", minimum=1)
    attention: str = setting(
        "encoder",
        "Which attention. encoder: of the source to itself; decoder: of the translation to what "
        "precedes it; memory: of the translation to the source.",
        choices=("encoder", "decoder", "memory"),
    )
    layer: int = setting(0, "Which layer, from 1; auto: the last but one.", zero="auto", minimum=0)
    heads: str = setting("", "Which heads, from 1, such as 5,6.  [default: all]", metavar="LIST")
    word: str = setting(
        "",
        "Show lines from this word alone: the word itself, or its place from 1.",
        metavar="WORD|NUMBER",
    )
    drawing: str = setting(
        "lines",
        "Kind of picture. lines: between two columns of words, a colour a head; matrix: a square a "
        "pair of words, the mean of the heads.",
        choices=("lines", "matrix"),
    )
    join_subwords: bool = setting(
        False,
        "Show words instead of subwords: a word gets the sum of what its subwords get, and gives "
        "the mean of what they give.",
    )
