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

_PAIRS = (
    *("()", "[]", "{}", "\uff08\uff09", "\u300c\u300d", "\u300e\u300f", "\u3010\u3011"),
    *("\u300a\u300b", "\u201c\u201d", "\u00ab\u00bb"),
)
_OTHER_OF_PAIR = dict(zip("".join(_PAIRS), "".join(one[::-1] for one in _PAIRS), strict=True))


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

    A pair of marks directly around it is inside if the source has no mark where it begins:
    translators into Japanese write names of buttons as `[...]`, and do so within the elements.

    Args:
        pair: the texts.
        source: the characters of the element.
        target: the characters of its target words.
    """
    start, end = edge(pair, source, target, -1), edge(pair, source, target, 1)
    around = pair.target[start - 1 : start] + pair.target[end : end + 1] if start else ""
    is_bare = not any(_marks(pair.source, source[0], step) for step in (-1, 1))
    return (start - 1, end + 1) if is_bare and around in _PAIRS else (start, end)


def edge(pair: TextPair, source: Span, target: Span, step: int) -> int:
    """Return where an element ends whose target words are known; or begins, if step is -1.

    Args:
        pair: the texts.
        source: the characters of the element.
        target: the characters of its target words.
        step: 1 from left to right, -1 from right to left.
    """
    place, (other, word_edge) = source[step > 0], target[::step]
    text, num_characters = pair.target, target[1] - target[0]
    if (copied := _place_in_copy(pair, place, word_edge - (step > 0))) is not None:
        return copied
    # Marks are in order from the letters to the outside.
    found = _marks(text, word_edge, -step)[:num_characters][::-1]
    inside = _marks(pair.source, place, -step)[: source[1] - source[0]][::-1]
    if len(found) == num_characters or len(inside) == source[1] - source[0]:
        return word_edge
    core = word_edge - step * len(found)
    marks, outside = _marks(text, core, step), _marks(pair.source, place, step)
    num_inside = len(inside)
    if not marks.startswith(inside):
        num_inside = min(num_inside, max(0, len(marks) - len(outside)))
    elif found and not inside:
        num_inside = int(_closes(found[0], text[slice(*_core(text, target))]))
    edge = core + step * num_inside
    while edge != other and text[edge - (step > 0)].isspace():
        edge -= step
    return edge


def word_at(words: Sequence[Span], place: int) -> Span:
    """Return the word that has a character; an empty one if it is a space."""
    found = words_within(words, place, place + 1)
    return words[found.start] if found else (place, place)


def words_within(words: Sequence[Span], start: int, end: int) -> range:
    """Return the words that have one of the characters from start to end."""
    first = bisect_right(words, start, key=lambda word: word[1])
    last = bisect_left(words, end, key=lambda word: word[0])
    return range(first, max(first, last))


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
        source, target = _core(pair.source, source), _core(pair.target, target)
    is_copy = pair.source[slice(*source)] == pair.target[slice(*target)]
    return target[0] + place - source[0] if is_copy and source[0] < place < source[1] else None


def _core(text: str, word: Span) -> Span:
    """Return where a word without the punctuation at its edges begins and ends."""
    start, end = word[0] + len(_marks(text, word[0], 1)), word[1] - len(_marks(text, word[1], -1))
    return (start, end) if start < end else (start, start)


def respaced(span: Span, text: str, other: str) -> Span:
    """Return where a part of a text is in another one that differs in spaces only."""
    first, last = (len("".join(text[:edge].split())) for edge in span)
    characters = [place for place, one in enumerate(other) if not one.isspace()]
    if not first < last <= len(characters):
        return span
    return characters[first], characters[last - 1] + 1


def _marks(text: str, place: int, step: int) -> str:
    """Return the punctuation marks from a place on, to the right (1) or to the left (-1)."""
    found = []
    place -= step < 0
    while 0 <= place < len(text) and _is_mark(text[place]):
        found.append(text[place])
        place += step
    return "".join(found)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "P" and character not in _SYMBOLS


def _closes(mark: str, text: str) -> bool:
    """Return whether a mark belongs to one in a text, as `)` to `(`."""
    other = _OTHER_OF_PAIR.get(mark)
    return other is not None and text.count(other) > text.count(mark)
