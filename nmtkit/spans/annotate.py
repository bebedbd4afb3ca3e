"""Annotated training pairs: marks of tags, placeholders and terms at aligned words, at random.

    annotator = Annotator(codec.source, codec.target)
    annotator.annotate(pair, first, {"tags": 7, "terms": 9})

Nothing but word links is needed: no corpus with tags, and no glossary. What is annotated are phrase
pairs: words of both sides that are linked to each other and to no others. Tags enclose them, nested
or next to each other; empty ones follow them. Placeholders replace numbers, addresses and rare
names that are equal on both sides. The target words of a term follow its source words. Of some,
the end is left out, so that the model also learns to write another form of a given word.
Sources: Koehn, Och and Marcu 2003 (phrase pairs); Dinu et al. 2019,
https://arxiv.org/abs/1906.01105 (terms that follow their source words); Bogoychev and Chen 2023,
https://arxiv.org/abs/2310.05824 (random words instead of a glossary).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from random import Random

from nmtkit.spans.placeholders import find_placeholders
from nmtkit.text.links import Link, in_order
from nmtkit.text.marks import Marks, is_marked, links_of_marks
from nmtkit.text.subword import SPACE_SYMBOL
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.text.words import word_and_punctuation_spans

Ids = Sequence[int]
Range = tuple[int, int]
"""Where pieces, or characters, begin and end."""

_KINDS_OF_PLACEHOLDERS = ("braces", "url", "email", "number")
_MOST_TAGS, _MOST_TERMS = 6, 3
_TRIES = 4
"""Random places per tag or term, as words may have no counterpart."""
_MORE, _LONGER = 0.5, 0.6
"""Probabilities of one more tag, term or placeholder, and of one more word in it."""
_EMPTY, _WHOLE_LINE, _SHORTENED = 0.2, 0.1, 0.25
"""Parts of the tags that are empty, or enclose the line, and of the terms whose end is missing."""


@dataclass(frozen=True)
class LinkedPair:
    """A training pair.

    Attributes:
        source, target: its ids, the end symbol last.
        links: pairs of a source and a target piece.
    """

    source: list[int]
    target: list[int]
    links: list[Link]


class Pieces:
    """The pieces of a line, and where they may be separated by marks.

    Attributes:
        ends: where the text of the first pieces ends, in characters, from no piece to all.
        text: of all pieces.
        borders: the places between pieces, and at both ends, that are not within a word or a
            punctuation mark; in order.
    """

    def __init__(self, texts: Sequence[str], first: int = 0) -> None:
        """Find the borders.

        Args:
            texts: of the pieces.
            first: the number of pieces at the beginning that are symbols, not text.
        """
        self.text = "".join(texts)
        self.ends = [*accumulate(map(len, texts), initial=0)]
        inside = {
            place
            for start, end in word_and_punctuation_spans(self.text)
            for place in range(start + 1, end)
        }
        self.borders = [
            place
            for place in range(first, len(self.ends))
            # A lone space is of the word after it, and a byte of the character that it begins.
            if place == first or (self.ends[place] not in inside and texts[place - 1].strip())
        ]

    def widened(self, start: int, end: int) -> Range:
        """Return the smallest range between borders that has given pieces."""
        return (
            max((one for one in self.borders if one <= start), default=start),
            min((one for one in self.borders if one >= end), default=end),
        )

    def begins_with_space(self, place: int) -> bool:
        """Return whether the text of the pieces from a place on begins with a space."""
        return self.text[self.ends[place] : self.ends[place] + 1].isspace()

    def of_text(self, start: int, end: int) -> Range | None:
        """Return the pieces that are a part of the text, with the space before it, or None."""
        for first in self.borders:
            if self.ends[first] <= start and not self.text[self.ends[first] : start].strip():
                return next(((first, one) for one in self.borders if self.ends[one] == end), None)
        return None


@dataclass(frozen=True)
class _Element:
    """A phrase pair to be marked.

    Attributes:
        ranges: its pieces of source and target; an empty element is between two.
        is_replaced: a mark replaces the pieces.
    """

    ranges: tuple[Range, Range]
    is_replaced: bool = False


@dataclass
class _Draft:
    """A pair, and how it will be annotated.

    Attributes:
        sides: the pieces of source and target.
        targets_of, sources_of: the linked pieces of each piece.
        elements: tags and placeholders.
        terms: source pieces, and the target text that follows them.
    """

    sides: tuple[Pieces, Pieces]
    targets_of: Mapping[int, set[int]]
    sources_of: Mapping[int, set[int]]
    elements: list[_Element] = field(default_factory=list)
    terms: list[tuple[Range, list[int]]] = field(default_factory=list)

    def random_phrase(self, random: Random) -> tuple[Range, Range] | None:
        """Draw a range of source words; return it with its target words, if it has its own."""
        borders = self.sides[0].borders
        if len(borders) < 2:
            return None
        first = random.randrange(len(borders) - 1)
        last = first + 1
        while last < len(borders) - 1 and random.random() < _LONGER:
            last += 1
        own = borders[first], borders[last]
        found = self.counterpart(own)
        return (own, found) if found else None

    def counterpart(self, own: Range) -> Range | None:
        """Return the target pieces that are linked to source pieces and to no others."""
        linked = {one for piece in range(*own) for one in self.targets_of.get(piece, ())}
        if not linked:
            return None
        found = self.sides[1].widened(min(linked), max(linked) + 1)
        sources = {one for piece in range(*found) for one in self.sources_of.get(piece, ())}
        return found if own[0] <= min(sources) and max(sources) < own[1] else None

    def add(self, element: _Element) -> bool:
        """Add an element if it nests with the others in the same way on both sides."""
        if not all(_nests(element, other) for other in self.elements):
            return False
        self.elements.append(element)
        return True


class Annotator:
    """Annotates pairs of two vocabularies with marks."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        """Store the vocabularies, which have marks."""
        assert source.marks
        assert target.marks
        self._vocabularies = source, target
        self._marks = source.marks, target.marks
        self._num_marks = min(map(len, self._marks))
        self._spaces = [space_of(one) for one in self._vocabularies]

    def annotate(
        self, pair: LinkedPair, first: Sequence[int], draws: Mapping[str, int]
    ) -> LinkedPair:
        """Return a pair with the annotations that are drawn; the pair itself if it has marks.

        Args:
            pair: ids without marks, and their links.
            first: the number of symbols that are no text with which source and target begin.
            draws: the random number of each kind of annotation, by its name.
        """
        both = pair.source, pair.target
        if any(map(is_marked, both, self._marks)):
            return pair
        texts = [one.texts(ids[:-1]) for one, ids in zip(self._vocabularies, both, strict=True)]
        source, target = (Pieces(*args) for args in zip(texts, first, strict=True))
        targets_of: dict[int, set[int]] = {}
        sources_of: dict[int, set[int]] = {}
        for one, other in pair.links:
            targets_of.setdefault(one, set()).add(other)
            sources_of.setdefault(other, set()).add(one)
        draft = _Draft((source, target), targets_of, sources_of)
        for name, draw_elements in _DRAWERS.items():
            if name in draws:
                draw_elements(self, draft, pair, Random(draws[name]))
        return self._written(draft, pair)

    def draw_placeholders(self, draft: _Draft, _pair: LinkedPair, random: Random) -> None:
        """Draw placeholders among the texts that are equal on both sides, and there once."""
        found = [*_equal_parts(draft.sides)]
        random.shuffle(found)
        for ranges, _ in zip(found, _number(self._num_marks, random), strict=False):
            draft.add(_Element(ranges, is_replaced=True))

    def draw_tags(self, draft: _Draft, _pair: LinkedPair, random: Random) -> None:
        """Draw elements around phrase pairs, and empty ones after them."""
        most = min(_MOST_TAGS, self._num_marks - len(draft.elements))
        for _ in _number(most, random):
            drawn = (_random_tag(draft, random) for _ in range(_TRIES))
            any(element and draft.add(element) for element in drawn)

    def draw_terms(self, draft: _Draft, pair: LinkedPair, random: Random) -> None:
        """Draw phrase pairs whose target words follow the source words."""
        source, target = self._vocabularies
        taken = [one.ranges for one in draft.elements if one.is_replaced]
        for _ in _number(_MOST_TERMS, random):
            drawn = (draft.random_phrase(random) for _ in range(_TRIES))
            phrase = next((one for one in drawn if one and _is_apart(one, taken)), None)
            if phrase is None:
                continue
            words = target.decode(pair.target[slice(*phrase[1])])
            if not (words[:1].isalnum() and words[-1:].isalnum()):
                continue
            ids = source.encode(words)
            if len(ids) > 1 and words[-1].isalpha() and random.random() < _SHORTENED:
                del ids[-1]
            draft.terms.append((phrase[0], ids))
            taken.append(phrase)

    def _written(self, draft: _Draft, pair: LinkedPair) -> LinkedPair:
        """Return a pair with its marks, and with links between the same pieces."""
        order = sorted(draft.elements, key=_in_order)
        written: list[list[int]] = []
        places: list[list[int]] = []
        for side, ids in enumerate((pair.source, pair.target)):
            marks, pieces = self._marks[side], draft.sides[side]
            before: dict[int, list[int]] = {}
            for (_, end), words in () if side else draft.terms:
                before.setdefault(end, []).extend([marks.term, *words, marks.term_end])
            for place, mark in _tags(order, side, marks):
                before.setdefault(place, []).append(mark)
            replaced = {}
            for number, one in enumerate(order):
                if one.is_replaced:
                    start, end = one.ranges[side]
                    space = self._spaces[side] if pieces.begins_with_space(start) else ()
                    replaced[start] = end, [*space, marks.empties[number]]
            new, new_places = _replaced(ids, before, replaced)
            written.append(new)
            places.append(new_places)
        links = {(places[0][source], places[1][target]) for source, target in pair.links}
        links |= {*links_of_marks((written[0], written[1]), self._marks)}
        return LinkedPair(written[0], written[1], in_order(links))


_DRAWERS: dict[str, Callable[[Annotator, _Draft, LinkedPair, Random], None]] = {
    "placeholders": Annotator.draw_placeholders,
    "tags": Annotator.draw_tags,
    "terms": Annotator.draw_terms,
}
"""Kinds of annotations in the order in which they are drawn; `ANNOTATIONS` in
nmtkit/config/training_rules.py names them."""


def space_of(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the id of a space before a placeholder; none if a vocabulary lacks it."""
    entries = (one for one in range(vocabulary.size) if vocabulary.piece(one) == SPACE_SYMBOL)
    return (*islice(entries, 1),)


def _random_tag(draft: _Draft, random: Random) -> _Element | None:
    if random.random() < _WHOLE_LINE:
        whole = tuple((one.borders[0], one.borders[-1]) for one in draft.sides)
        has_words = all(start < end for start, end in whole)
        return _Element((whole[0], whole[1])) if has_words else None
    phrase = draft.random_phrase(random)
    if phrase is None or random.random() >= _EMPTY:
        return _Element(phrase) if phrase else None
    (_, source), (_, target) = phrase
    return _Element(((source, source), (target, target)))


def _equal_parts(sides: tuple[Pieces, Pieces]) -> Iterator[tuple[Range, Range]]:
    """Yield the pieces of placeholders and rare names that both texts have once."""
    found = []
    for side in sides:
        spans = find_placeholders(side.text, _KINDS_OF_PLACEHOLDERS, ())
        words = word_and_punctuation_spans(side.text)
        names = [(start, end) for start, end in words if side.text[start].isupper()]
        texts = [side.text[slice(*span)] for span in (*spans, *names)]
        counts = Counter(texts)
        found.append(
            {
                text: (side.of_text(*span), number < len(spans))
                for number, (text, span) in enumerate(zip(texts, (*spans, *names), strict=True))
                if counts[text] == 1
            }
        )
    for text, (source, is_number) in found[0].items():
        target, _ = found[1].get(text, (None, False))
        # Only rare words have several pieces.
        if source and target and (is_number or source[1] > source[0] + 1):
            yield source, target


def _number(most: int, random: Random) -> Iterator[int]:
    """Yield numbers from 0, at least one if `most` is not 0; each next one by chance."""
    for number in range(most):
        if number and random.random() >= _MORE:
            break
        yield number


def _is_apart(phrase: tuple[Range, Range], others: Sequence[tuple[Range, Range]]) -> bool:
    """Return whether a phrase pair shares no pieces with others, on either side."""
    return all(
        "apart" in _relations(*both) for other in others for both in zip(phrase, other, strict=True)
    )


def _nests(one: _Element, other: _Element) -> bool:
    """Return whether two elements are apart, or one within the other, on both sides."""
    found = set.intersection(*map(_relations, one.ranges, other.ranges))
    return bool(found - {"around" if one.is_replaced else "", "in" if other.is_replaced else ""})


def _relations(one: Range, other: Range) -> set[str]:
    """Return what a range is to another; one without words is in another if it is in its middle."""
    if one[0] == one[1]:
        return {"in" if other[0] < one[0] < other[1] else "apart"}
    if other[0] == other[1]:
        return {"around" if one[0] < other[0] < one[1] else "apart"}
    found = {
        "apart": one[1] <= other[0] or other[1] <= one[0],
        "in": other[0] <= one[0] and one[1] <= other[1],
        "around": one[0] <= other[0] and other[1] <= one[1],
    }
    return {name for name, is_so in found.items() if is_so}


def _in_order(element: _Element) -> tuple[int, bool, int, int, bool]:
    """Return a key that sorts elements by their place in the source, outer ones first."""
    (start, end), (target_start, target_end) = element.ranges
    return start, end > start, -end, target_start - target_end, element.is_replaced


def _tags(order: Sequence[_Element], side: int, marks: Marks) -> Iterator[tuple[int, int]]:
    """Yield the place and id of each tag's mark; those of a place in the order of writing."""
    tags: list[tuple[tuple[int, ...], int]] = []
    for number, one in enumerate(order):
        start, end = one.ranges[side]
        if one.is_replaced:
            continue
        if start == end:
            tags.append(((start, 1, number), marks.empties[number]))
        else:
            tags.append(((end, 0, -start, -number), marks.closings[number]))
            tags.append(((start, 2, -end, number), marks.openings[number]))
    for (place, *_), mark in sorted(tags):
        yield place, mark


def _replaced(
    ids: Ids, before: Mapping[int, Ids], replaced: Mapping[int, tuple[int, Ids]]
) -> tuple[list[int], list[int]]:
    """Return ids with others before some places and instead of some ranges.

    Also returned is where each of the given ids, or what replaces it, now is.
    """
    new: list[int] = []
    places: list[int] = []
    while (place := len(places)) < len(ids):
        new += before.get(place, ())
        end, own = replaced.get(place, (place + 1, ids[place : place + 1]))
        new += own
        places += [len(new) - 1] * (end - place)
    return new, places
