"""Tags of a line of XML or HTML: its tokens, and which closing tag closes which opening tag.

Other modules make plain text of the tokens. A `<` or `&` that begins neither a tag nor a reference
is text. All functions take linear time, whatever the line has, and none recurses.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.entities import html5
from typing import Literal

from nmtkit.text.words import (
    EXCLAMATION_MARKS,
    FULL_STOPS,
    QUESTION_MARKS,
    WIDE_EXCLAMATION_MARKS,
    WIDE_FULL_STOPS,
    WIDE_QUESTION_MARKS,
    joined,
)

Kind = Literal["text", "opening", "closing", "mark"]

NO_PARTNER = -1

ROOT = -1
"""The parent of elements that no other element encloses."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a line, or a mark: a tag that encloses nothing.

    Attributes:
        opening: the opening tag, or the mark.
        closing: the closing tag; "" for a mark.
        kept: the whole element if its content is not translated, else "".
        start, end: the characters of the plain text that it encloses.
        parent: the index of the innermost element that encloses it, or ROOT.
        has_space_before, has_space_after: whether the line has a space, or its edge, there.
        is_break: whether words before and after its tags are never one.
    """

    opening: str
    closing: str
    kept: str
    start: int
    end: int
    parent: int
    has_space_before: bool
    has_space_after: bool
    is_break: bool


@dataclass(frozen=True, slots=True)
class Markup:
    """A markup language.

    Attributes:
        tag: pattern of a tag at a `<`.
        entities: named references to characters.
        voids: elements without a closing tag.
        kept: elements whose content is not translated.
        is_case_sensitive: whether names that differ in case are different.
    """

    tag: re.Pattern[str]
    entities: Mapping[str, str]
    voids: frozenset[str]
    kept: frozenset[str]
    is_case_sensitive: bool


_SPACE = r"[ \t\r\n\f]"
_QUOTED = "\"[^\"]*+\"|'[^']*+'"
_XML_START = (
    "A-Z_a-z:\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""Source: Extensible Markup Language 1.0, production 4."""
_XML_NAME = f"[{_XML_START}][-.0-9\u00b7\u0300-\u036f\u203f\u2040{_XML_START}]*+"
_HTML_NAME = "[A-Za-z][-.:_0-9A-Za-z]*+"
_HTML_ATTRIBUTE_NAME = r"[^\s\"'<>/=]++"


def _tag_pattern(name: str, attribute: str) -> re.Pattern[str]:
    """Return the pattern of a tag; possessive, so it never tries a character twice."""
    return re.compile(
        f"<(?P<slash>/)?(?P<name>{name})(?P<attributes>(?:{_SPACE}++{attribute})*+)"
        f"{_SPACE}*+(?P<is_empty>/)?>"
    )


MARKUPS: dict[str, Markup] = {
    "xml": Markup(
        tag=_tag_pattern(_XML_NAME, f"{_XML_NAME}{_SPACE}*+={_SPACE}*+(?:{_QUOTED})"),
        entities={"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"},
        voids=frozenset(),
        kept=frozenset(),
        is_case_sensitive=True,
    ),
    "html": Markup(
        tag=_tag_pattern(
            _HTML_NAME,
            f"{_HTML_ATTRIBUTE_NAME}(?:{_SPACE}*+={_SPACE}*+(?:{_QUOTED}|[^\\s\"'=<>`]++))?+",
        ),
        entities={name[:-1]: text for name, text in html5.items() if name.endswith(";")},
        voids=frozenset(
            "area base br col embed hr img input link meta source track wbr".split()  # noqa: SIM905
        ),
        kept=frozenset({"code", "kbd", "samp", "var"}),
        is_case_sensitive=False,
    ),
}

_BREAKS = frozenset(
    "address article aside blockquote br caption dd div dl dt entry figcaption figure footer "  # noqa: SIM905
    "h1 h2 h3 h4 h5 h6 header hr li listitem main nav note ol p para pre row section step table "
    "tbody td tfoot th thead title tr ul".split()
)
"""Elements that begin a line or a block of their own, in HTML and formats of documentation."""

_TRANSLATE = re.compile(
    f"{_SPACE}++(?P<name>[^\\s=]++)(?:{_SPACE}*+={_SPACE}*+(?P<value>{_QUOTED}|[^\\s\"']++))?+"
)
_OPAQUE = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_OPAQUE_START = re.compile(r"<!--|<!\[CDATA\[|<\?(?=[^\W\d])")
_REFERENCE = re.compile(
    "&(?:#(?P<decimal>[0-9]{1,9})|#[xX](?P<hexadecimal>[0-9a-fA-F]{1,8})"
    r"|(?P<name>[^\W\d][\w.:-]{0,63}));"
)
_CANDIDATE = re.compile("[<&]")
_CLOSING = "".join(
    (
        FULL_STOPS + EXCLAMATION_MARKS + QUESTION_MARKS,
        WIDE_FULL_STOPS + WIDE_EXCLAMATION_MARKS + WIDE_QUESTION_MARKS,
        ",;:\u060c\u061b\u3001\uff0c\uff1a\uff1b",
    )
)
_ENDS_OF_WORDS = ("Pe", "Pf", "Pi", "Po", "Pd", "Pc")
_SURROGATES = range(0xD800, 0xE000)
_NUM_CODES = 0x110000


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a line.

    Attributes:
        kind: `mark` is anything without a partner by itself: an empty element, a comment, a
            processing instruction, a CDATA section, a reference that is not to a character.
        start, end: its characters in the line.
        raw: these characters.
        text: the text that they are; "" of others than text.
        name: of a tag; in lower case where case does not count.
        is_kept: whether the content of this opening tag is not translated.
        is_break: whether words before and after it are never one.
    """

    kind: Kind
    start: int
    end: int
    raw: str
    text: str = ""
    name: str = ""
    is_kept: bool = False
    is_break: bool = False


def tokens_of(line: str, markup: Markup) -> Iterator[Token]:
    """Yield the tokens of a line; concatenated, they are the line."""
    last_ends = {start: line.rfind(end) for start, end in _OPAQUE.items()}
    begin = position = 0
    while candidate := _CANDIDATE.search(line, position):
        token = _token_at(line, candidate.start(), markup, last_ends)
        if token is None:
            position = candidate.end()
            continue
        if begin < token.start:
            yield _text(line, begin, token.start)
        yield token
        begin = position = token.end
    if begin < len(line):
        yield _text(line, begin, len(line))


def partners_of(tokens: Sequence[Token]) -> list[int]:
    """Return the index of the tag that closes or opens the element of each token.

    A closing tag belongs to the nearest opening tag of its name that is still open. Opening tags
    between them have no partner, and neither has a closing tag without an open element.
    """
    partners = [NO_PARTNER] * len(tokens)
    open_tags: list[int] = []
    open_of: dict[str, list[int]] = {}
    for index, token in enumerate(tokens):
        if token.kind == "opening":
            open_tags.append(index)
            open_of.setdefault(token.name, []).append(index)
        elif token.kind == "closing" and open_of.get(token.name):
            partner = open_of[token.name][-1]
            while open_tags and open_tags[-1] >= partner:
                open_of[tokens[open_tags.pop()].name].pop()
            partners[index], partners[partner] = partner, index
    return partners


def separate(tags: Iterable[tuple[Kind, bool]], before: str, after: str) -> bool:
    """Return whether tags without spaces between two characters separate two words.

    Breaks do, such as `<br/>` and `<li>`, and so do two elements next to each other. Scripts
    without spaces have none here either, and punctuation stays with its word.

    Args:
        tags: the kind of each tag, and whether it is a break.
        before: the last two characters before them.
        after: the first two characters after them.
    """
    is_closed = is_separated = False
    for kind, is_break in tags:
        is_separated |= is_break or (is_closed and kind == "opening")
        is_closed |= kind == "closing"
    return (
        is_separated
        and not (before[-1].isspace() or after[0].isspace())
        and (unicodedata.category(before[-1]) not in ("Ps", "Pi") or before[:-1].isalnum())
        and (unicodedata.category(after[0]) not in _ENDS_OF_WORDS or after[1:].isalnum())
        and " " in joined((before[-1], after[0]), are_sentences=False)
    )


def leave_open(kinds: Iterable[Kind]) -> bool:
    """Return whether tags open more elements than they close after that."""
    depth = 0
    for kind in kinds:
        if kind == "opening":
            depth += 1
        elif kind == "closing":
            depth = max(0, depth - 1)
    return depth > 0


def is_closing(character: str) -> bool:
    """Return whether a character is punctuation that has no space before it."""
    return character in _CLOSING or unicodedata.category(character) in ("Pe", "Pf")


def _text(line: str, start: int, end: int) -> Token:
    return Token("text", start, end, line[start:end], line[start:end])


def _token_at(line: str, start: int, markup: Markup, last_ends: dict[str, int]) -> Token | None:
    """Return the tag, mark or reference that begins at a `<` or `&`; None if it is text."""
    if line[start] == "&":
        found = _REFERENCE.match(line, start)
        return _reference(found, markup) if found else None
    if opaque := _OPAQUE_START.match(line, start):
        # Looked for only where there is one: else many beginnings would take quadratic time.
        if last_ends[opaque[0]] < opaque.end():
            return None
        terminator = _OPAQUE[opaque[0]]
        end = line.index(terminator, opaque.end()) + len(terminator)
        return Token("mark", start, end, line[start:end])
    tag = markup.tag.match(line, start)
    return _tag(tag, markup) if tag else None


def _tag(found: re.Match[str], markup: Markup) -> Token | None:
    name = found["name"] if markup.is_case_sensitive else found["name"].lower()
    kind: Kind = "opening"
    if found["slash"]:
        if found["attributes"] or found["is_empty"]:
            return None
        kind = "mark" if name in markup.voids else "closing"
    elif found["is_empty"] or name in markup.voids:
        kind = "mark"
    is_kept = kind == "opening" and (
        name in markup.kept or _is_not_translated(found["attributes"], markup)
    )
    is_break = name.lower() in _BREAKS
    return Token(kind, *found.span(), found[0], "", name, is_kept, is_break)


def _is_not_translated(attributes: str, markup: Markup) -> bool:
    """Return whether the first attribute `translate` says `no`."""
    for found in _TRANSLATE.finditer(attributes):
        name, value = found["name"], (found["value"] or "").strip("\"'")
        if not markup.is_case_sensitive:
            name, value = name.lower(), value.lower()
        if name == "translate":
            return value == "no"
    return False


def _reference(found: re.Match[str], markup: Markup) -> Token:
    text = _referenced(found, markup)
    # What an unknown reference stands for is known at least if it is a space of HTML. Models read
    # all spaces alike, so a reference to one is kept as a mark between words.
    is_space = (text or html5.get(f"{found['name']};", "")).isspace()
    is_character = text and not is_space
    if is_character and not any(unicodedata.category(one) in ("Cc", "Cs") for one in text):
        return Token("text", *found.span(), found[0], text)
    return Token("mark", *found.span(), found[0], is_break=is_space)


def _referenced(found: re.Match[str], markup: Markup) -> str:
    """Return the characters that a reference stands for; "" if that is not known."""
    if found["name"]:
        return markup.entities.get(found["name"], "")
    code = int(found["decimal"] or found["hexadecimal"], 10 if found["decimal"] else 16)
    if code == 0 or code in _SURROGATES or code >= _NUM_CODES:
        return ""
    return chr(code) if markup.is_case_sensitive else html.unescape(found[0])
