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
from collections.abc import Mapping, Sequence

import numpy as np

from nmtkit.spans.edges import Span, TextPair, edge, edges, word_at, words_within
from nmtkit.spans.tags import ROOT, Element, is_closing

_PLACE_WEIGHT = 1000
"""Weight of a word whose place is certain, against words that are linked."""


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
) -> list[Span]:
    """Return what each element encloses in the translation; marks enclose nothing.

    The result is nested as the elements are, and has no edge within a place.

    Args:
        elements: each after its parent.
        texts: the plain text of the line, and its translation.
        links: pairs of a source and a target word.
        places: where parts of the plain text stand in the translation for certain. A kept element
            that is one of these parts is there, if its parent is, and else a mark.
    """
    words = _LinkedWords(texts, links, places)
    children: dict[int, list[int]] = {}
    for index, element in enumerate(elements):
        children.setdefault(element.parent, []).append(index)
    ranges = sorted(places.values())
    found = [(0, 0)] * len(elements)
    source, bounds = ((0, len(text)) for text in texts)
    pending = [ROOT]
    while pending:
        parent = pending.pop()
        if parent != ROOT:
            source, bounds = (elements[parent].start, elements[parent].end), found[parent]
        wanted: dict[int, Span] = {}
        taken: list[Span] = []
        own = children.get(parent, [])
        for index in own:
            element = elements[index]
            place = places.get((element.start, element.end)) if element.kept else None
            if place and bounds[0] <= place[0] <= place[1] <= bounds[1]:
                found[index] = place
                insort(taken, place)
            else:
                wanted[index] = _wanted_span(element, source, bounds, words)
        for index, span in sorted(wanted.items(), key=lambda item: item[1][0] - item[1][1]):
            start, end = _longest_free(span, taken, texts[1])
            if start < end:
                insort(taken, (start, end))
            elif start < bounds[1] and is_closing(texts[1][start]):  # not after a space
                start = end = bounds[0] + len(texts[1][bounds[0] : start].rstrip())
            found[index] = _outside(start, ranges), _outside(end, ranges)
        pending += own
    return found


class _LinkedWords:
    """The words of a line and of its translation, and the links between them."""

    def __init__(
        self,
        texts: tuple[str, str],
        links: Sequence[tuple[int, int]],
        places: Mapping[Span, Span],
    ) -> None:
        self.pair = pair = TextPair.of(*texts)
        counts = len(pair.source_words), len(pair.target_words)
        placed = {
            (source, target)
            for part, place in places.items()
            for source in words_within(pair.source_words, *part)
            for target in words_within(pair.target_words, *place)
        }
        sources, targets = ({link[side] for link in placed} for side in (0, 1))
        free = {
            (source, target)
            for source, target in links or nearest_links(*counts)
            if source not in sources and target not in targets
        }
        found = np.array(sorted(placed | free), np.int64).reshape(-1, 2)
        self._sources, self._targets = found[:, 0], found[:, 1]
        self._weights = np.zeros(counts[1], np.int64)
        self._weights[self._targets] = 1
        self._weights[sorted(targets)] = _PLACE_WEIGHT

    def range_of(self, words: range, within: range) -> range:
        """Return the target words of source words; an empty range if they have no links."""
        first, last = np.searchsorted(self._sources, (words.start, words.stop))
        linked = self._targets[first:last]
        linked = linked[(linked >= within.start) & (linked < within.stop)]
        if not len(linked):
            return range(0)
        scores = -self._weights[within.start : within.stop]
        scores[linked - within.start] *= -1
        sums = np.concatenate([[0], scores.cumsum()])
        lowest = np.minimum.accumulate(sums)
        end = int((sums - lowest).argmax())
        begin = int(np.flatnonzero(sums[:end] == lowest[end])[-1])
        return range(within.start + begin, within.start + end)

    def with_edges(self, found: range, within: range, is_first: bool, is_last: bool) -> range:
        """Return a range with the words without links between it and an edge of the text."""
        has_start = is_first and not self._weights[within.start : found.start].any()
        has_end = is_last and not self._weights[found.stop : within.stop].any()
        return range(
            within.start if has_start else found.start, within.stop if has_end else found.stop
        )

    def last_before(self, word: int, within: range) -> int | None:
        """Return the last target word of the nearest source word before one that has any."""
        targets = self._targets[: np.searchsorted(self._sources, word)]
        linked = np.flatnonzero((targets >= within.start) & (targets < within.stop))
        if not len(linked):
            return None
        source = int(self._sources[linked[-1]])
        return self.range_of(range(source, source + 1), within).stop - 1

    def unlinked_near(self, word: int, within: range, most: int) -> range:
        """Return the words without links that are nearest to a target word, in a row."""
        unlinked = within.start + np.flatnonzero(self._weights[within.start : within.stop] == 0)
        if not len(unlinked):
            return range(0)
        begin = int(unlinked[abs(unlinked - word).argmin()])
        linked = np.flatnonzero(self._weights[begin : min(begin + most, within.stop)])
        return range(
            begin, begin + int(linked[0]) if len(linked) else min(begin + most, within.stop)
        )


def _wanted_span(element: Element, parent: Span, bounds: Span, words: _LinkedWords) -> Span:
    """Return where an element is by its links, within its parent.

    Args:
        element: the element.
        parent: what its parent encloses in the source.
        bounds: what its parent encloses in the translation.
        words: the words and links.
    """
    if element.start < element.end and not element.kept:
        if (element.start, element.end) == parent:
            return bounds
        span = _span_of_words(element, parent, bounds, words)
    else:
        place = _place_of_mark(element, parent, bounds, words)
        span = place, place
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
    is_of_next = pair.source[mark.start - 1].isspace() and not mark.kept
    if is_of_next and (found := words.range_of(own, within)):
        source = mark.start, pair.source_words[own.start][1]
        return _edge_of_mark(mark, pair, source, pair.target_words[found.start], -1)
    num_before = words_within(pair.source_words, 0, mark.start).stop
    last = words.last_before(num_before, within)
    if last is None:
        return bounds[0]
    source = pair.source_words[num_before - 1][0], mark.start
    return _edge_of_mark(mark, pair, source, pair.target_words[last], 1)


def _edge_of_mark(mark: Element, pair: TextPair, source: Span, target: Span, step: int) -> int:
    """Return the edge of a target word that a mark is at; see `edge`.

    Punctuation is between them only if it is in the line, or ends the translation.
    """
    side = int(step > 0)
    is_last = step > 0 and target == pair.target_words[-1] and not mark.is_break
    if source[side] == word_at(pair.source_words, source[0])[side] and not is_last:
        return target[side]
    return edge(pair, source, target, step)


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


def _outside(place: int, ranges: Sequence[Span]) -> int:
    """Return the nearest place that is not within one of some ranges."""
    index = bisect_left(ranges, place, key=lambda one: one[1])
    if index == len(ranges) or place <= ranges[index][0]:
        return place
    start, end = ranges[index]
    return start if place - start < end - place else end
