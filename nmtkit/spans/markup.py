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
from dataclasses import dataclass

from nmtkit.errors import DataError
from nmtkit.spans.edges import words_within
from nmtkit.spans.projection import ROOT, Element
from nmtkit.spans.tags import (
    MARKUPS,
    NO_PARTNER,
    Kind,
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


@dataclass(frozen=True)
class Kept:
    """A part of a line that its translation has byte for byte.

    Attributes:
        start, end: its characters in the plain text.
        raw: the element as in the line, such as `<code>a&amp;b</code>`.
    """

    start: int
    end: int
    raw: str


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
    def has_markup(self) -> bool:
        """Whether the line has a tag, a mark, or a reference to a character."""
        return bool(self.elements or self.references)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The elements with text that is not translated."""
        return tuple(
            Kept(one.start, one.end, one.kept)
            for one in self.elements
            if one.kept and one.start < one.end
        )


@dataclass(frozen=True)
class Structure:
    """The markup of a line without its text.

    Attributes:
        is_well_formed: whether every opening and closing tag has its partner.
        tags: all tags and marks in order.
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
    return _Reader(line, language).read()


def structure(line: str, language: str) -> Structure:
    """Return the markup of a line without its text; see `read_markup`."""
    tokens = list(tokens_of(line, MARKUPS[language]))
    partners = partners_of(tokens)
    tags: list[str] = []
    nesting: list[tuple[str, str]] = []
    parents = [""]
    is_well_formed = True
    for token, partner in zip(tokens, partners, strict=True):
        if token.kind == "text":
            continue
        tags.append(token.raw)
        if token.kind == "closing" and partner != NO_PARTNER:
            parents.pop()
            continue
        nesting.append((parents[-1], token.raw))
        if partner != NO_PARTNER:
            parents.append(token.raw)
        elif token.kind != "mark":
            is_well_formed = False
    return Structure(is_well_formed, tuple(tags), tuple(sorted(nesting)))


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


@dataclass
class _Draft:
    """An element whose edges in the plain text are not yet known."""

    token: Token
    parent: int
    closing: Token | None = None
    start: int = 0
    end: int = 0
    is_of_next_word: bool = False
    is_opening_glued: bool = False
    is_closing_glued: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    """A tag of an element.

    Attributes:
        draft: the element.
        kind: the part of the element; a tag without a partner is a mark.
        num_spaces_before: how often there are spaces between it and the last character.
    """

    draft: _Draft
    kind: Kind
    num_spaces_before: int


class _Run:
    """The tags and spaces between two characters of the plain text."""

    def __init__(self) -> None:
        self.tags: list[tuple[Kind, bool]] = []
        self.edges: list[_Edge] = []
        self.spaces = ""
        self.num_spaces = 0
        self.is_tag_last = False

    def add_spaces(self, spaces: str) -> None:
        if spaces:
            self.spaces += spaces
            self.num_spaces += 1
            self.is_tag_last = False

    def add_tag(self, token: Token) -> None:
        self.tags.append((token.kind, token.is_break))
        self.is_tag_last = True

    def add_edge(self, draft: _Draft, kind: Kind) -> None:
        self.edges.append(_Edge(draft, kind, self.num_spaces))


class _Reader:
    """Reads a line from left to right."""

    def __init__(self, line: str, language: str) -> None:
        self._line = line
        self._tokens = list(tokens_of(line, MARKUPS[language]))
        self._has_tags = any(token.kind != "text" for token in self._tokens)
        self._drafts: list[_Draft] = []
        self._references: dict[str, str] = {}
        self._parts: list[str] = []
        self._length = 0
        self._run = _Run()

    def read(self) -> MarkedLine:
        parents = [ROOT]
        end_of_kept = NO_PARTNER
        partners = partners_of(self._tokens)
        for index, (token, partner) in enumerate(zip(self._tokens, partners, strict=True)):
            is_kept = index < end_of_kept
            if token.kind == "text":
                self._add_text(token, is_kept)
                continue
            self._run.add_tag(token)
            if is_kept:
                continue
            if partner != NO_PARTNER and token.kind == "closing":
                draft = self._drafts[parents.pop()]
                draft.closing = token
                self._run.add_edge(draft, "closing")
                continue
            draft = _Draft(token, parents[-1])
            self._run.add_edge(draft, "mark" if partner == NO_PARTNER else "opening")
            if partner != NO_PARTNER:
                parents.append(len(self._drafts))
                end_of_kept = partner if token.is_kept else end_of_kept
            self._drafts.append(draft)
        self._end_run("")
        elements = tuple(map(self._element, self._drafts))
        return MarkedLine("".join(self._parts), elements, tuple(self._references.items()))

    def _add_text(self, token: Token, is_kept: bool) -> None:
        core = token.text.strip(_BLANKS)
        num_leading = len(token.text) - len(token.text.lstrip(_BLANKS))
        self._run.add_spaces(token.text[:num_leading])
        if not core:
            return
        self._end_run(core[:2])
        self._append(core)
        self._run.add_spaces(token.text[num_leading + len(core) :])
        # One `&#97;` does not make references of all letters a.
        is_letter = core.isascii() and core.isalnum()
        if token.raw != token.text and not is_kept and not is_letter:
            self._references.setdefault(core, token.raw)

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)

    def _end_run(self, next_two: str) -> None:
        """Set the edges between the last character and the next ones, "" at the end."""
        run, self._run = self._run, _Run()
        before, after = "".join(self._parts[-2:])[-2:], next_two[:1]
        ends_word = bool(after) and is_closing(after) and not next_two[1:].isalnum()
        is_glued = (
            bool(before and after) and not run.spaces and separate(run.tags, before, next_two)
        )
        end = self._length
        self._append(" " if is_glued else self._spaces(run, before, after, ends_word))
        for edge in run.edges:
            draft = edge.draft
            if edge.kind == "closing":
                draft.is_closing_glued = is_glued
                if draft.start <= end:
                    draft.end = end
                elif not draft.is_of_next_word:  # without text, it is where a mark would be
                    draft.start = draft.end = end
                continue
            is_before_space = edge.num_spaces_before < run.num_spaces or not after
            draft.is_of_next_word = (
                (edge.num_spaces_before > 0 or not before) and not is_before_space and not ends_word
            )
            draft.is_opening_glued = is_glued
            draft.start = draft.end = self._length
            if edge.kind == "mark" and not draft.is_of_next_word:
                draft.start = draft.end = end

    def _spaces(self, run: _Run, before: str, after: str, ends_word: bool) -> str:
        """Return the spaces of the plain text between two characters."""
        if self._has_tags and not (before and after):
            return ""
        if not run.tags:
            return run.spaces
        # The space was before a mark, as in `Click <x/>.`, or within an element.
        is_of_tag = run.is_tag_last and not leave_open(kind for kind, _ in run.tags)
        return "" if is_of_tag and ends_word else run.spaces[:1]

    def _element(self, draft: _Draft) -> Element:
        token, closing = draft.token, draft.closing
        end = closing.end if closing else token.end
        return Element(
            opening=token.raw,
            closing=closing.raw if closing else "",
            kept=self._line[token.start : end] if closing and token.is_kept else "",
            start=draft.start,
            end=draft.end,
            parent=draft.parent,
            has_space_before=token.start == 0 or self._line[token.start - 1] in _BLANKS,
            has_space_after=end == len(self._line) or self._line[end] in _BLANKS,
            is_of_next_word=draft.is_of_next_word,
            is_break=token.is_break,
            is_opening_glued=draft.is_opening_glued,
            is_closing_glued=draft.is_closing_glued,
        )
