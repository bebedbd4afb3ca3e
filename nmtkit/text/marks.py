"""Marks: symbols of a vocabulary that stand for tags, placeholders and terms, never for text.

`preprocess --marks N` appends them to the vocabularies. Lines are segmented as without them, and
their ids are put between the ids of pieces:

    _Click <mark:1> _Save </mark:1> .                   an element with words
    _Page _ <mark:1/> _of <mark:2/>                     a placeholder; an empty element
    _The _mouse <mark:term> _Maus </mark:term> _is      a source term, and its target term
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

_TERM, _TERM_END = "<mark:term>", "</mark:term>"


def mark_names(number: int) -> list[str]:
    """Return the entries of a vocabulary with `number` marks of each kind."""
    numbered = [name for one in range(1, number + 1) for name in _names(one)]
    return [_TERM, _TERM_END, *numbered]


@dataclass(frozen=True)
class Marks:
    """The ids of the marks of a vocabulary.

    Attributes:
        openings, closings: the ids around the words of an element, by its number from 0.
        empties: the id of an element without words, or of a placeholder.
        term, term_end: the ids around the target words of a term.
    """

    openings: tuple[int, ...]
    closings: tuple[int, ...]
    empties: tuple[int, ...]
    term: int
    term_end: int

    @staticmethod
    def of(find: Callable[[str], int | None]) -> "Marks | None":
        """Return the marks of a vocabulary; None = it has none.

        Args:
            find: returns the id of an entry that no text can have; None = there is no such entry.
        """
        term, term_end = find(_TERM), find(_TERM_END)
        if term is None or term_end is None:
            return None
        found: list[tuple[int, ...]] = []
        while None not in (own := [*map(find, _names(len(found) + 1))]):
            found.append(tuple(index for index in own if index is not None))
        openings, closings, empties = zip(*found, strict=True)
        return Marks(openings, closings, empties, term, term_end)

    def __len__(self) -> int:
        """Return the number of elements that a line may have."""
        return len(self.openings)

    @cached_property
    def ids(self) -> frozenset[int]:
        """The ids of all marks."""
        return frozenset({*self.numbered, self.term, self.term_end})

    @cached_property
    def numbered(self) -> tuple[int, ...]:
        """The ids of the marks of elements: three of each number, in order."""
        return (*chain.from_iterable(zip(self.openings, self.closings, self.empties, strict=True)),)

    def places_of_text(self, ids: Sequence[int]) -> Iterator[int]:
        """Yield the places of the ids that are of the line itself, not marks or target terms."""
        is_term = False
        for place, index in enumerate(ids):
            is_term = index == self.term or (is_term and index != self.term_end)
            if not is_term and index not in self.ids:
                yield place


def is_marked(ids: Collection[int], marks: Marks | None) -> bool:
    """Return whether ids have marks."""
    return marks is not None and not marks.ids.isdisjoint(ids)


def links_of_marks(
    pair: tuple[Sequence[int], Sequence[int]], marks: tuple[Marks, Marks]
) -> Iterator[tuple[int, int]]:
    """Yield the places of each mark in both ids of a pair, so that an alignment head learns them.

    Args:
        pair: source and target ids.
        marks: those of the source and the target vocabulary.
    """
    place_of = {index: place for place, index in enumerate(pair[0])}
    twins = dict(zip(marks[1].numbered, marks[0].numbered, strict=False))
    for place, index in enumerate(pair[1]):
        if (twin := twins.get(index)) in place_of:
            yield place_of[twin], place


def _names(number: int) -> tuple[str, str, str]:
    return f"<mark:{number}>", f"</mark:{number}>", f"<mark:{number}/>"
