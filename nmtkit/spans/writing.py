"""A translation with the markup of its line.

Elements go directly around their words, marks next to the word that they are next to in the line. A
mark has spaces before and after it if the line has them, as far as the translation has a space
there. Spaces between tags that the line does not have are left out: see nmtkit/spans/markup.py.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nmtkit.spans.edges import Span
from nmtkit.spans.markup import MarkedLine
from nmtkit.spans.projection import ROOT, project
from nmtkit.spans.tags import Kind, is_closing, leave_open, separate

_BLANKS = " \t"
_ALWAYS_ESCAPED = {"&": "&amp;", "<": "&lt;", "]]>": "]]&gt;"}


def write_markup(
    line: MarkedLine,
    translation: str,
    links: Sequence[tuple[int, int]],
    places: Mapping[Span, Span],
) -> str:
    """Return a translation with the markup of its line.

    Read again, it has the translation as its plain text, except at kept elements, and at spaces
    next to breaks and between elements.

    Args:
        line: the source.
        translation: of its plain text.
        links: pairs of a source and a target word, counted from 0; none = words at the same part
            of both texts are linked.
        places: the characters of the translation that stand for parts of the plain text. No tag is
            put within; a kept element that is such a part replaces these characters. Without a
            place, or with one outside its parent, a kept element is inserted as a mark.
    """
    spans, moved = project(line.elements, (line.text, translation), links, places)
    text = _Text(line, translation, places, moved)
    parts, place = [], 0
    for tags in _in_gaps(_placed_tags(line, spans, places, moved), translation):
        start, end = _gap(translation, tags[0].place, tags[-1].place)
        if _is_glued(tags, translation, start, end):
            parts += [text.escaped(place, start), *(tag.raw for tag in tags)]
            place = end
            continue
        is_open = leave_open(tag.kind for tag in tags)
        for tag in tags:
            parts += [text.escaped(place, tag.place), _spaced(tag, translation, is_open)]
            place = tag.place
    return "".join([*parts, text.escaped(place, len(translation))])


class _Text:
    """A translation whose parts are written with references and kept elements."""

    def __init__(
        self,
        line: MarkedLine,
        translation: str,
        places: Mapping[Span, Span],
        moved: Collection[int],
    ) -> None:
        self._translation = translation
        self._references = (_ALWAYS_ESCAPED if line.is_escaped else {}) | dict(line.references)
        longest_first = sorted(self._references, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._kept = sorted(
            (*places[one.start, one.end], "" if index in moved else one.kept)
            for index, one in enumerate(line.elements)
            if one.kept and one.start < one.end and (one.start, one.end) in places
        )

    def escaped(self, start: int, end: int) -> str:
        """Return the characters from start to end as they are written."""
        parts = []
        first, last = bisect_left(self._kept, (start,)), bisect_left(self._kept, (end,))
        for begin, stop, raw in self._kept[first:last]:
            parts += [self._with_references(start, begin), raw]
            start = stop
        return "".join([*parts, self._with_references(start, end)])

    def _with_references(self, start: int, end: int) -> str:
        part = self._translation[start:end]
        return self._pattern.sub(lambda found: self._references[found[0]], part)


@dataclass(frozen=True, slots=True)
class _PlacedTag:
    """A tag and its place in the translation; the rest is as in `Element`."""

    place: int
    raw: str
    kind: Kind
    is_break: bool
    is_glued: bool
    has_space_before: bool = False
    has_space_after: bool = False


def _placed_tags(
    line: MarkedLine, spans: Sequence[Span], places: Mapping[Span, Span], moved: Collection[int]
) -> Iterator[_PlacedTag]:
    """Yield the tags in order, except those of kept elements that have a place."""
    children: dict[int, list[int]] = {}
    for index in sorted(range(len(spans)), key=lambda index: (*spans[index], index)):
        element = line.elements[index]
        is_text = element.kept and (element.start, element.end) in places
        if not is_text or index in moved:
            children.setdefault(element.parent, []).append(index)
    stack = [(index, False) for index in reversed(children.get(ROOT, []))]
    while stack:
        index, is_end = stack.pop()
        element, (start, end) = line.elements[index], spans[index]
        is_empty = element.start == element.end
        if is_end:
            yield _PlacedTag(
                end,
                element.closing,
                "closing",
                element.is_break,
                element.is_closing_glued,
                has_space_after=is_empty and element.has_space_after,
            )
            continue
        is_mark = bool(element.kept) or not element.closing
        yield _PlacedTag(
            start,
            element.kept or element.opening,
            "mark" if is_mark else "opening",
            element.is_break,
            element.is_opening_glued,
            has_space_before=(is_mark or is_empty) and element.has_space_before,
            has_space_after=is_mark and element.has_space_after,
        )
        if not is_mark:
            stack.append((index, True))
            stack.extend((child, False) for child in reversed(children.get(index, [])))


def _in_gaps(tags: Iterator[_PlacedTag], translation: str) -> Iterator[list[_PlacedTag]]:
    """Yield the tags that have at most spaces between them."""
    gap: list[_PlacedTag] = []
    for tag in tags:
        if gap and translation[gap[-1].place : tag.place].strip(_BLANKS):
            yield gap
            gap = []
        gap.append(tag)
    if gap:
        yield gap


def _gap(translation: str, start: int, end: int) -> Span:
    """Return where the spaces around a place begin and end."""
    while start > 0 and translation[start - 1] in _BLANKS:
        start -= 1
    while end < len(translation) and translation[end] in _BLANKS:
        end += 1
    return start, end


def _is_glued(tags: Sequence[_PlacedTag], translation: str, start: int, end: int) -> bool:
    """Return whether tags stand for the space between two words, as they do in the line."""
    return (
        translation[start:end] == " "
        and start > 0
        and end < len(translation)
        and all(tag.is_glued for tag in tags)
        and separate(
            ((tag.kind, tag.is_break) for tag in tags),
            translation[max(0, start - 2) : start],
            translation[end : end + 2],
        )
    )


def _spaced(tag: _PlacedTag, translation: str, is_open: bool) -> str:
    """Return a tag with the spaces that the line has next to it and the translation has not."""
    before = translation[tag.place - 1 : tag.place] if tag.place else " "
    after = translation[tag.place : tag.place + 1] or " "
    # As read: a space before a mark before punctuation is no space of the text.
    is_of_word = translation[tag.place + 1 : tag.place + 2].isalnum()  # as in `.png`
    is_before_punctuation = is_closing(after) and not (is_open or is_of_word)
    is_at_end = (after in _BLANKS or is_before_punctuation) and before not in _BLANKS
    is_at_start = before in _BLANKS and after not in _BLANKS
    space_before = " " if tag.has_space_before and is_at_end else ""
    space_after = " " if tag.has_space_after and is_at_start else ""
    return f"{space_before}{tag.raw}{space_after}"
