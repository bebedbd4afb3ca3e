"""A translation with the markup of its line.

Elements go directly around their words, marks next to the word that they are next to in the line. A
mark has spaces before and after it if the line has them, as far as the translation has a space
there. Spaces between tags that the line does not have are left out: see nmtkit/spans/markup.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from nmtkit.spans.edges import Span
from nmtkit.spans.markup import MarkedLine
from nmtkit.spans.projection import project
from nmtkit.spans.tags import ROOT, Kind, is_closing, leave_open, separate

_BLANKS = " \t"
_ALWAYS_ESCAPED = {"&": "&amp;", "<": "&lt;", "]]>": "]]&gt;"}


def write_markup(
    line: MarkedLine,
    translation: str,
    links: Sequence[tuple[int, int]],
    places: Mapping[Span, Span],
    spans: Sequence[Span] | None = None,
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
        spans: where each element is in the translation; None = by the links.
    """
    references = (_ALWAYS_ESCAPED if line.is_escaped else {}) | dict(line.references)
    longest_first = map(re.escape, sorted(references, key=len, reverse=True))
    pattern = re.compile("|".join(longest_first) or "(?!)")
    if spans is None:
        spans = project(line.elements, (line.text, translation), links, places)
    parts: list[str] = []
    place = 0

    def add(end: int, *tags: str) -> None:
        text = pattern.sub(lambda found: references[found[0]], translation[place:end])
        parts.extend((text, *tags))

    tags = sorted(_placed_tags(line, spans, places), key=attrgetter("start"))
    for (start, end), found in groupby(tags, lambda tag: _gap(translation, tag.start)):
        gap = list(found)
        if _is_glued(gap, translation, start, end):
            add(start, *(tag.raw for tag in gap))
            place = max(end, gap[-1].end)
            continue
        is_open = leave_open(tag.kind for tag in gap)
        for tag in gap:
            add(tag.start, _spaced(tag, translation, is_open))
            place = max(place, tag.end)
    add(len(translation))
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _PlacedTag:
    """A tag in the place of characters of the translation.

    Attributes:
        start, end: the characters that it replaces; equal if it is inserted.
        raw, kind, is_break: as in `Token`.
        has_space_before, has_space_after: as in `Element`, on the outer side of a tag.
        is_alone: whether it is inserted and encloses nothing, so that it has these spaces, too.
    """

    start: int
    end: int
    raw: str
    kind: Kind
    is_break: bool = False
    has_space_before: bool = False
    has_space_after: bool = False
    is_alone: bool = False


def _placed_tags(
    line: MarkedLine, spans: Sequence[Span], places: Mapping[Span, Span]
) -> Iterator[_PlacedTag]:
    """Yield the tags; those at the same place are in order."""
    children: dict[int, list[int]] = {}
    for index in sorted(range(len(spans)), key=lambda index: (*spans[index], index)):
        element = line.elements[index]
        children.setdefault(element.parent, []).append(index)
        place = places.get((element.start, element.end)) if element.kept else None
        if place and place != spans[index]:  # it is elsewhere, as a mark
            yield _PlacedTag(*place, "", "mark")
    stack = [(index, False) for index in reversed(children.get(ROOT, []))]
    while stack:
        index, is_end = stack.pop()
        element, (start, end) = line.elements[index], spans[index]
        is_mark = bool(element.kept) or not element.closing
        kind: Kind = "closing" if is_end else "mark" if is_mark else "opening"
        edge = end if is_end else start
        yield _PlacedTag(
            start=edge,
            end=end if is_mark else edge,
            raw=element.closing if is_end else element.kept or element.opening,
            kind=kind,
            is_break=element.is_break,
            has_space_before=element.has_space_before and not is_end,
            has_space_after=element.has_space_after and kind != "opening",
            is_alone=start == end if is_mark else element.start == element.end,
        )
        if kind == "opening":
            own = reversed(children.get(index, []))
            stack += [(index, True), *((child, False) for child in own)]


def _gap(translation: str, place: int) -> Span:
    """Return where the spaces around a place begin and end."""
    start = end = place
    while start > 0 and translation[start - 1] in _BLANKS:
        start -= 1
    while end < len(translation) and translation[end] in _BLANKS:
        end += 1
    return start, end


def _is_glued(tags: Sequence[_PlacedTag], translation: str, start: int, end: int) -> bool:
    """Return whether tags stand for the space between two words, as they do in the line."""
    return (
        translation[start:end] == " "
        and 0 < start < end < len(translation)
        and not any(tag.has_space_before or tag.has_space_after for tag in tags)
        and separate(
            ((tag.kind, tag.is_break) for tag in tags),
            translation[max(0, start - 2) : start],
            translation[end : end + 2],
        )
    )


def _spaced(tag: _PlacedTag, translation: str, is_open: bool) -> str:
    """Return a tag with the spaces that the line has next to it and the translation has not."""
    before = translation[tag.start - 1 : tag.start] if tag.start else " "
    after = translation[tag.start : tag.start + 1] or " "
    # As read: a space before a mark before punctuation is no space of the text.
    is_of_word = translation[tag.start + 1 : tag.start + 2].isalnum()  # as in `.png`
    is_before_punctuation = is_closing(after) and not (is_open or is_of_word)
    is_at_end = (after in _BLANKS or is_before_punctuation) and before not in _BLANKS
    is_at_start = before in _BLANKS and after not in _BLANKS
    space_before = " " * (tag.is_alone and tag.has_space_before and is_at_end)
    space_after = " " * (tag.is_alone and tag.has_space_after and is_at_start)
    return f"{space_before}{tag.raw}{space_after}"
