"""Inline markup of a line: its plain text, and its tags put into a translation of that text.

    line = read_markup("Click <b>Save</b> &amp; go.", "xml")
    line.text                                                   # Click Save & go.
    write_markup(line, "Klicke Speichern & geh.", links, {})    # ... <b>Speichern</b> &amp; geh.

Tags keep their bytes. A mark encloses nothing: a tag without a partner, a comment, a CDATA section,
a processing instruction, a reference to anything but a character.

Spaces: tags leave no double spaces, and none at the edges of the plain text, nor before closing
punctuation (`Click <x/>.`). Words on both sides of a tag without spaces are one word, as in
`un<b>believ</b>able`, except at elements that begin a line or a block, such as `<br/>` and `<li>`,
and between two elements (`</li><li>`). There the plain text has a space, and the output has none.

Characters: those that the line has as references, such as `&quot;`, are these references in the
output, too. `&` and `<` are always references there, also if the line has them as text (`a < b`).

`nmtkit/spans/writing.py` writes the markup into a translation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from nmtkit.errors import DataError
from nmtkit.spans.edges import words_within
from nmtkit.spans.tags import (
    MARKUPS,
    NO_PARTNER,
    ROOT,
    Element,
    Token,
    is_closing,
    leave_open,
    partners_of,
    separate,
    tokens_of,
)
from nmtkit.text.words import word_spans

_DOCUMENT = re.compile(r"\s*(?:<\?xml\b|(?i:<!doctype\b|<html\b))")
_BLANKS = " \t"
_TAG = "\ud800"
"""Stands for a tag; half of a character, which no text has."""
_GAP = re.compile(f"(?<![{_BLANKS}{_TAG}])[{_BLANKS}]*+{_TAG}[{_BLANKS}{_TAG}]*+")
"""Tags between two characters of the plain text, with their spaces."""


@dataclass(frozen=True)
class MarkedLine:
    """A line of text with markup.

    Attributes:
        text: the plain text to translate.
        elements: elements and marks in order of their beginning.
        references: the characters that the line has as references, with the first one of each.
        is_escaped: `&` and `<` are written as references.
    """

    text: str
    elements: tuple[Element, ...]
    references: tuple[tuple[str, str], ...]
    is_escaped: bool = True

    @property
    def kept(self) -> tuple[Element, ...]:
        """The elements whose text the translation has byte for byte."""
        return tuple(one for one in self.elements if one.kept and one.start < one.end)


@dataclass(frozen=True)
class Structure:
    """The markup of a line without its text.

    Attributes:
        is_well_formed: whether every opening and closing tag has its partner.
        tags: all tags and marks in order; a reference to a space is none.
        nesting: each element and mark after its parent, sorted; "" for the line.
    """

    is_well_formed: bool
    tags: tuple[str, ...]
    nesting: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MarkedWords:
    """The text of an element.

    Attributes:
        opening: its opening tag.
        text: the plain text that it encloses.
        words: the words of the line that have a character of it.
    """

    opening: str
    text: str
    words: range


def read_markup(line: str, language: str) -> MarkedLine:
    """Return the plain text of a line, and its markup.

    Args:
        line: a line of text with tags.
        language: a key of `MARKUPS`.

    Raises:
        DataError: the line begins a document.
    """
    if _DOCUMENT.match(line):
        raise DataError(
            "a document, not a line of text; extract its text first, one segment per line"
        )
    tokens = list(tokens_of(line, MARKUPS[language]))
    partners = partners_of(tokens)
    text, places = _plain_text(tokens)
    numbers = {ROOT: ROOT}
    elements: list[Element] = []
    references: dict[str, str] = {}
    end_of_kept = 0
    for index, parent in enumerate(_parents_of(partners)):
        token, last = tokens[index], max(index, partners[index])
        if index < end_of_kept or -1 < partners[index] < index:
            continue
        if token.kind == "text":
            # One `&#97;` does not make references of all letters a.
            if token.raw != token.text and not (token.text.isascii() and token.text.isalnum()):
                references.setdefault(token.text, token.raw)
            continue
        start, end = places[index].after, places[last].before
        if last == index or end < start:  # without text
            start = end = places[index].own
        is_kept = token.is_kept and last > index
        end_of_kept = last if is_kept else end_of_kept
        numbers[index] = len(elements)
        elements.append(
            Element(
                opening=token.raw,
                closing=tokens[last].raw if last > index else "",
                kept=line[token.start : tokens[last].end] if is_kept else "",
                start=start,
                end=end,
                parent=numbers[parent],
                has_space_before=not line[max(0, token.start - 1) : token.start].strip(_BLANKS),
                has_space_after=not line[tokens[last].end :][:1].strip(_BLANKS),
                is_break=token.is_break,
            )
        )
    return MarkedLine(text, tuple(elements), tuple(references.items()))


def structure(line: str, language: str) -> Structure:
    """Return the markup of a line without its text; see `read_markup`."""
    tokens = list(tokens_of(line, MARKUPS[language]))
    partners = partners_of(tokens)
    tags = [
        index
        for index, token in enumerate(tokens)
        if token.kind != "text" and not (token.raw[0] == "&" and token.is_break)  # a space
    ]
    parents = _parents_of(partners)
    nesting = [
        ("" if parents[index] == ROOT else tokens[parents[index]].raw, tokens[index].raw)
        for index in tags
        if not -1 < partners[index] < index
    ]
    is_well_formed = all(
        tokens[index].kind == "mark" or partners[index] != NO_PARTNER for index in tags
    )
    raw = tuple(tokens[index].raw for index in tags)
    return Structure(is_well_formed, raw, tuple(sorted(nesting)))


def marked_words(line: str, language: str) -> list[MarkedWords]:
    """Return the text of each element, also of kept ones; see `read_markup`."""
    read = read_markup(line, language)
    spans = word_spans(read.text)
    return [
        MarkedWords(
            one.opening, read.text[one.start : one.end], words_within(spans, one.start, one.end)
        )
        for one in read.elements
        if one.closing
    ]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tag is in the plain text.

    Attributes:
        before, after: the end of the word before it, and the beginning of the next one.
        own: the one of both that a mark is at: that of the next word if it touches this one alone.
    """

    before: int
    after: int
    own: int


def _parents_of(partners: Sequence[int]) -> list[int]:
    """Return the opening tag of the innermost element around each token, or ROOT."""
    parents, opened = [], [ROOT]
    for index, partner in enumerate(partners):
        if NO_PARTNER < partner < index:
            opened.pop()
        parents.append(opened[-1])
        if partner > index:
            opened.append(index)
    return parents


def _plain_text(tokens: Sequence[Token]) -> tuple[str, dict[int, _Place]]:
    """Return the plain text of tokens, and the place of each tag by its index."""
    line = "".join(token.text if token.kind == "text" else _TAG for token in tokens)
    if _TAG in line:
        line = line.strip(_BLANKS)
    tags = (index for index, token in enumerate(tokens) if token.kind != "text")
    places: dict[int, _Place] = {}
    parts, num_written, length = [], 0, 0
    for found in _GAP.finditer(line):
        gap, (start, end) = found[0], found.span()
        own = [*islice(tags, gap.count(_TAG))]
        parts.append(line[num_written:start])
        before, after = "".join(parts[-2:])[-2:], line[end : end + 2]
        ends_word = after != "" and is_closing(after[0]) and not after[1:].isalnum()
        space = gap.replace(_TAG, "")[:1]
        kinds = [(tokens[index].kind, tokens[index].is_break) for index in own]
        if not (before and after):
            space = ""
        elif not space:
            space = " " * separate(kinds, before, after)
        elif ends_word and gap[-1] == _TAG and not leave_open(kind for kind, _ in kinds):
            space = ""  # it was before a mark, as in `Click <x/>.`, or within an element
        parts.extend(space)
        length += start - num_written
        num_written = end
        last_space = max(map(gap.rfind, _BLANKS))
        positions = (position for position, one in enumerate(gap) if one == _TAG)
        for index, position in zip(own, positions, strict=True):
            is_of_next = -1 < last_space < position and not ends_word
            after_space = length + len(space)
            places[index] = _Place(length, after_space, after_space if is_of_next else length)
        length += len(space)
    return "".join([*parts, line[num_written:]]), places
