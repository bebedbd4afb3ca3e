"""Where in its target words an element begins and ends: at, before or after punctuation.

Links count words, and words have their punctuation. Whether the punctuation at the edge of an
element is inside is decided by the source: `(<b>Save</b>).` is `(<b>Speichern</b>).` Marks that the
source does not have stay outside: `<b>Save</b> it` is `<b>Speichern</b>, ...`. In a word that the
translation copies, tags stay where they are: `H<sub>2</sub>O`.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from nmtkit.text.words import word_spans

Span = tuple[int, int]
"""Where something begins and ends, in characters."""

_SYMBOLS = "%\u2030#&@*/\\_\u2032\u2033"
"""Characters of words that Unicode calls punctuation."""

_PAIRS = (  # each opening mark before its closing one
    "()[]{}\uff08\uff09\u300c\u300d\u300e\u300f\u3010\u3011\u300a\u300b\u201c\u201d\u00ab\u00bb"
)
_OTHER_OF_PAIR = {one: _PAIRS[index ^ 1] for index, one in enumerate(_PAIRS)}


@dataclass(frozen=True)
class TextPair:
    """A line and its translation, and where their words begin and end."""

    source: str
    target: str
    source_words: Sequence[Span]
    target_words: Sequence[Span]

    @classmethod
    def of(cls, source: str, target: str) -> "TextPair":
        """Return a pair of two texts."""
        return cls(source, target, word_spans(source), word_spans(target))


def edges(pair: TextPair, source: Span, target: Span) -> Span:
    """Return where an element whose target words are known begins and ends.

    Args:
        pair: the texts.
        source: the characters of the element.
        target: the characters of its target words.
    """
    found = edge(pair, source, target, -1), edge(pair, source, target, 1)
    is_bare = not (_marks(pair.source, source[0], 0) or _marks(pair.source, *source))
    return _with_pair_around(found, pair.target) if is_bare else found


def edge(pair: TextPair, source: Span, target: Span, step: int) -> int:
    """Return where an element ends whose target words are known; or begins, if step is -1.

    Args:
        pair: the texts.
        source: the characters of the element.
        target: the characters of its target pair.
        step: 1 from left to right, -1 from right to left.
    """
    other, own = source[::step]
    other_found, edge_found = target[::step]
    text = pair.target
    if (place := _place_in_copy(pair, own, edge_found - (step > 0))) is not None:
        return place
    found = _marks(text, edge_found, other_found)[::-1]
    inside = _marks(pair.source, own, other)[::-1]
    if len(found) == target[1] - target[0] or len(inside) == source[1] - source[0]:
        return edge_found
    outside = _marks(pair.source, own, len(pair.source) if step > 0 else 0)
    beyond = _marks(text, edge_found, len(text) if step > 0 else 0)
    num_outside = _num_outside(inside, outside, found, beyond)
    if found and not inside:
        begin = other_found + step * len(_marks(text, other_found, edge_found))
        body = sorted((begin, edge_found - step * len(found)))
        num_outside -= _is_other_of_pair(found[0], text[slice(*body)])
    found_edge = edge_found - step * num_outside
    while found_edge != other_found and text[found_edge - (step > 0)].isspace():
        found_edge -= step
    return found_edge


def word_at(words: Sequence[Span], place: int) -> Span:
    """Return the word that has a character; an empty one if it is a space."""
    found = words_within(words, place, place + 1)
    return words[found.start] if found else (place, place)


def words_within(words: Sequence[Span], start: int, end: int) -> range:
    """Return the words that have one of the characters from start to end."""
    first = bisect_right(words, start, key=lambda word: word[1])
    last = bisect_left(words, end, key=lambda word: word[0])
    return range(first, max(first, last))


def _num_outside(inside: str, outside: str, found: str, beyond: str) -> int:
    """Return how many punctuation marks at the edge of target words an element leaves out.

    All are in order from the words to the outside.

    Args:
        inside: the marks at this edge that the element encloses in the source.
        outside: the marks after those.
        found: the marks of the target words.
        beyond: the marks after those.

    Returns:
        The number; less than 0 if the element encloses marks that are not of its target words.
    """
    if not inside:
        return len(found)
    if found.startswith(inside):
        return len(found) - len(inside)
    if outside:
        return min(len(outside), len(found))
    return 0 if found else -min(len(inside), len(beyond))


def _place_in_copy(pair: TextPair, place: int, character: int) -> int | None:
    """Return the same place in a target word that is a copy of the source word at the place.

    None if it is no copy, or if the place is not within the source word. A copy has the same
    letters; if it has other punctuation at its edges, that is no part of it.

    Args:
        pair: the texts.
        place: in the source.
        character: of the target word.
    """
    source = word_at(pair.source_words, place)
    target = word_at(pair.target_words, character)
    if pair.source[slice(*source)] != pair.target[slice(*target)]:
        source = _without_marks(pair.source, source)
        target = _without_marks(pair.target, target)
    is_copy = pair.source[slice(*source)] == pair.target[slice(*target)]
    return target[0] + place - source[0] if is_copy and source[0] < place < source[1] else None


def _without_marks(text: str, word: Span) -> Span:
    """Return where a word without the punctuation at its edges begins and ends."""
    start = word[0] + len(_marks(text, *word))
    return start, max(start, word[1] - len(_marks(text, word[1], start)))


def _marks(text: str, place: int, limit: int) -> str:
    """Return the punctuation marks from a place on, in the direction of a limit."""
    step = 1 if limit >= place else -1
    found = []
    for index in range(place - (step < 0), limit - (step < 0), step):
        if unicodedata.category(text[index])[0] != "P" or text[index] in _SYMBOLS:
            break
        found.append(text[index])
    return "".join(found)


def _is_other_of_pair(mark: str, text: str) -> bool:
    """Return whether a mark belongs to one in a text, as `)` to `(`."""
    other = _OTHER_OF_PAIR.get(mark)
    return other is not None and text.count(other) > text.count(mark)


def _with_pair_around(span: Span, text: str) -> Span:
    """Return a span with the pair of marks directly around it, if there is one.

    Translators into Japanese write names of buttons as `[...]`, and do so within the elements.
    """
    start, end = span
    if start == 0 or text[start - 1] not in _PAIRS[::2]:
        return span
    return (start - 1, end + 1) if text[end : end + 1] == _OTHER_OF_PAIR[text[start - 1]] else span
