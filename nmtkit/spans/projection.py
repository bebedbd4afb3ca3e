"""Where the elements of a line are in its translation, by word alignment.

An element encloses the target words that are linked to its own words: of the ranges of words, the
one with the most words linked to it, less those that are linked to other words only. So one wrong
link does not stretch it over half of the sentence, as the range from the first to the last linked
word would. Source of that range: Zenkel et al. 2021, "Automatic Bilingual Markup Transfer".

Elements stay within their parents, and do not overlap: a longer one goes first, and the others are
cut. One without linked words encloses words near the translation of the word before it that are
linked to nothing, or nothing.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nmtkit.spans.edges import Span, TextPair, edge, edges, word_at, words_within
from nmtkit.spans.tags import is_closing

ROOT = -1
"""The parent of elements that no other element encloses."""

_PLACE_WEIGHT = 1000
"""Weight of a word whose place is certain, against words that are linked."""


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
        is_of_next_word: whether it touches the word after it, but not the word before it.
        is_break: whether words before and after its tags are never one.
        is_opening_glued, is_closing_glued: whether the plain text has a space at this tag that the
            line does not have.
    """

    opening: str
    closing: str
    kept: str
    start: int
    end: int
    parent: int
    has_space_before: bool
    has_space_after: bool
    is_of_next_word: bool
    is_break: bool
    is_opening_glued: bool
    is_closing_glued: bool


def nearest_links(num_source: int, num_target: int) -> list[tuple[int, int]]:
    """Return links between words at the same part of a line and its translation.

    Every word has a link, if both have words.
    """
    if not (num_source and num_target):
        return []
    of_source = {(one, (2 * one + 1) * num_target // (2 * num_source)) for one in range(num_source)}
    of_target = {((2 * one + 1) * num_source // (2 * num_target), one) for one in range(num_target)}
    return sorted(of_source | of_target)


def project(
    elements: Sequence[Element],
    texts: tuple[str, str],
    links: Sequence[tuple[int, int]],
    places: Mapping[Span, Span],
) -> tuple[list[Span], frozenset[int]]:
    """Return what each element encloses in the translation; marks enclose nothing.

    Also returned are the kept elements whose place is outside their parent: they are marks, too.

    The result is nested as the elements are, and has no edge within a place.

    Args:
        elements: each after its parent.
        texts: the plain text of the line, and its translation.
        links: pairs of a source and a target word.
        places: where parts of the plain text stand in the translation for certain. An element that
            is one of these parts is there.
    """
    words = _LinkedWords(texts, links, places)
    children: dict[int, list[int]] = {}
    for index, element in enumerate(elements):
        children.setdefault(element.parent, []).append(index)
    source, target = texts
    bounds: dict[int, tuple[Span, Span]] = {ROOT: ((0, len(source)), (0, len(target)))}
    pending, moved = [ROOT], set[int]()
    while pending:
        parent = pending.pop()
        own = children.get(parent, [])
        wanted: dict[int, Span] = {}
        fixed: list[Span] = []
        for index in own:
            element = elements[index]
            place = places.get((element.start, element.end)) if element.kept else None
            begin, end = bounds[parent][1]
            if place is None or not begin <= place[0] <= place[1] <= end:
                wanted[index] = _wanted_span(element, *bounds[parent], words)
                if place is not None:
                    moved.add(index)
            else:
                bounds[index] = (0, 0), place
                fixed.append(place)
        for index, span in _without_overlaps(wanted, fixed, target).items():
            source_span = elements[index].start, elements[index].end
            bounds[index] = source_span, _after_words(span, bounds[parent][1], target)
        pending.extend(own)
    ranges = sorted(places.values())
    spans = (bounds[index][1] for index in range(len(elements)))
    found = [(_outside(start, ranges), _outside(end, ranges)) for start, end in spans]
    return found, frozenset(moved)


class _LinkedWords:
    """The words of a line and of its translation, and the links between them."""

    def __init__(
        self,
        texts: tuple[str, str],
        links: Sequence[tuple[int, int]],
        places: Mapping[Span, Span],
    ) -> None:
        self.pair = TextPair.of(*texts)
        source_spans, target_spans = self.pair.source_words, self.pair.target_words
        self._targets_of: list[set[int]] = [set() for _ in source_spans]
        self._sources_of: list[set[int]] = [set() for _ in target_spans]
        placed = [
            (words_within(source_spans, *part), words_within(target_spans, *place))
            for part, place in places.items()
        ]
        placed_sources = {word for words, _ in placed for word in words}
        self._placed = {word for _, words in placed for word in words}
        for source, target in links or nearest_links(len(source_spans), len(target_spans)):
            if source not in placed_sources and target not in self._placed:
                self._link(source, target)
        for source_words, target_words in placed:
            for source in source_words:
                for target in target_words:
                    self._link(source, target)
        self._unlinked = [one for one, sources in enumerate(self._sources_of) if not sources]
        self._found: dict[tuple[range, range], range] = {}
        self._last_before: dict[range, list[int | None]] = {}

    def _link(self, source: int, target: int) -> None:
        self._targets_of[source].add(target)
        self._sources_of[target].add(source)

    def range_of(self, words: range, within: range) -> range:
        """Return the target words of source words; an empty range if they have no links."""
        key = words, within
        if key not in self._found:
            self._found[key] = self._best_range(words, within)
        return self._found[key]

    def _best_range(self, words: range, within: range) -> range:
        linked = {one for word in words for one in self._targets_of[word] if one in within}
        best, best_score = range(0), 0
        begin, score = 0, 0
        for one in range(min(linked, default=0), max(linked, default=-1) + 1):
            weight = _PLACE_WEIGHT if one in self._placed else 1
            if one in linked:
                if score <= 0:
                    begin, score = one, 0
                score += weight
                if score > best_score:
                    best, best_score = range(begin, one + 1), score
            elif self._sources_of[one]:
                score -= weight
        return best

    def with_edges(self, found: range, within: range, is_first: bool, is_last: bool) -> range:
        """Return a range with the words without links between it and an edge of the text."""
        first, last = found.start, found.stop
        if is_first and not any(self._sources_of[one] for one in range(within.start, first)):
            first = within.start
        if is_last and not any(self._sources_of[one] for one in range(last, within.stop)):
            last = within.stop
        return range(first, last)

    def last_before(self, word: int, within: range) -> int | None:
        """Return the last target word of the nearest source word before one that has any."""
        if within not in self._last_before:
            last: int | None = None
            found: list[int | None] = [None]
            for one in range(len(self._targets_of)):
                if own := self.range_of(range(one, one + 1), within):
                    last = own.stop - 1
                found.append(last)
            self._last_before[within] = found
        return self._last_before[within][word]

    def unlinked_near(self, word: int, within: range, most: int) -> range:
        """Return the words without links that are nearest to a target word, in a row."""
        first = bisect_left(self._unlinked, within.start)
        last = bisect_left(self._unlinked, within.stop)
        index = bisect_left(self._unlinked, word, first, last)
        near = self._unlinked[max(first, index - 1) : min(last, index + 1)]
        if not near:
            return range(0)
        begin = min(near, key=lambda one: abs(one - word))
        end = begin + 1
        while end in within and end - begin < most and not self._sources_of[end]:
            end += 1
        return range(begin, end)


def _wanted_span(element: Element, parent: Span, bounds: Span, words: _LinkedWords) -> Span:
    """Return where an element is by its links, within its parent.

    Args:
        element: the element.
        parent: what its parent encloses in the source.
        bounds: what its parent encloses in the translation.
        words: the words and links.
    """
    if element.start == element.end or element.kept:
        place = _place_of_mark(element, parent, bounds, words)
        span = place, place
    elif (element.start, element.end) == parent:
        return bounds
    else:
        span = _span_of_words(element, parent, bounds, words)
    start, end = (min(max(one, bounds[0]), bounds[1]) for one in span)
    return start, max(start, end)


def _span_of_words(element: Element, parent: Span, bounds: Span, words: _LinkedWords) -> Span:
    pair = words.pair
    own = words_within(pair.source_words, element.start, element.end)
    within = words_within(pair.target_words, *bounds)
    if own == words_within(pair.source_words, *parent):
        found = within
    else:
        found = words.range_of(own, within)
    if not found:
        before = words.last_before(own.start, within)
        place = within.start if before is None else before + 1
        found = words.unlinked_near(place, within, len(own))
        if not found:
            end = bounds[0] if before is None else pair.target_words[before][1]
            return end, end
    is_first, is_last = element.start == parent[0], element.end == parent[1]
    found = words.with_edges(found, within, is_first, is_last)
    target = pair.target_words[found.start][0], pair.target_words[found.stop - 1][1]
    return edges(pair, (element.start, element.end), target)


def _place_of_mark(mark: Element, parent: Span, bounds: Span, words: _LinkedWords) -> int:
    """Return the place of a mark: at the edge of its parent, or next to the word that it is of."""
    if mark.start <= parent[0]:
        return bounds[0]
    if mark.start >= parent[1]:
        return bounds[1]
    pair = words.pair
    within = words_within(pair.target_words, *bounds)
    own = words_within(pair.source_words, mark.start, mark.start + 1)
    if own and mark.is_of_next_word and not mark.kept:
        word = own.start
        if found := words.range_of(range(word, word + 1), within):
            span = pair.target_words[found.start]
            return _edge_of_mark(mark, pair, (mark.start, pair.source_words[word][1]), span, -1)
    num_before = words_within(pair.source_words, 0, mark.start).stop
    last = words.last_before(num_before, within)
    if last is None:
        return bounds[0]
    begin = pair.source_words[num_before - 1][0]
    return _edge_of_mark(mark, pair, (begin, mark.start), pair.target_words[last], 1)


def _edge_of_mark(mark: Element, pair: TextPair, source: Span, target: Span, step: int) -> int:
    """Return the edge of a target word that a mark is at; see `edge`.

    Punctuation is between them only if it is in the line, or ends the translation.
    """
    side = 1 if step > 0 else 0
    is_last = step > 0 and target == pair.target_words[-1] and not mark.is_break
    if source[side] == word_at(pair.source_words, source[0])[side] and not is_last:
        return target[side]
    return edge(pair, source, target, step)


def _without_overlaps(
    wanted: Mapping[int, Span], fixed: Iterable[Span], text: str
) -> dict[int, Span]:
    """Return the spans of siblings, cut where they overlap; a longer one goes first."""
    taken = sorted(fixed)
    found = {}
    for index, span in sorted(wanted.items(), key=lambda item: item[1][0] - item[1][1]):
        found[index] = free = _longest_free(span, taken, text)
        if free[0] < free[1]:
            insort(taken, free)
    return found


def _longest_free(span: Span, taken: Sequence[Span], text: str) -> Span:
    """Return the longest part of a span without spans that are taken; else an empty one.

    Where a part ends because others begin, it ends with a letter.
    """
    start, end = span
    first = bisect_right(taken, start, key=lambda one: one[1])
    last = bisect_left(taken, end, lo=first, key=lambda one: one[0])
    if first >= last:
        return span
    cuts = [start, *(place for one in taken[first:last] for place in one), end]
    parts = [
        (begin, stop)
        for begin, stop in zip(cuts[::2], cuts[1::2], strict=True)
        if any(map(str.isalnum, text[begin:stop]))
    ]
    if not parts:
        place = start if start <= taken[first][0] else taken[first][1]
        return place, place
    begin, stop = max(parts, key=lambda part: part[1] - part[0])
    while begin > start and not text[begin].isalnum():
        begin += 1
    while stop < end and not text[stop - 1].isalnum():
        stop -= 1
    return begin, stop


def _after_words(span: Span, bounds: Span, text: str) -> Span:
    """Return a span, an empty one moved from before punctuation to the word before that."""
    place, end = span
    if place == end < bounds[1] and is_closing(text[place]):
        while place > bounds[0] and text[place - 1].isspace():
            place -= 1
        return place, place
    return span


def _outside(place: int, ranges: Sequence[Span]) -> int:
    """Return the nearest place that is not within one of some ranges."""
    index = bisect_left(ranges, place, key=lambda one: one[1])
    if index == len(ranges) or place <= ranges[index][0]:
        return place
    start, end = ranges[index]
    return start if place - start < end - place else end
