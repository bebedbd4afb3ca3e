"""Word alignments: lines of links in Pharaoh's format, and links between pieces of a vocabulary.

`0-0 1-2` links source and target words. Gold alignments also have links that are only possible, not
sure: `1p2`, or `1?2`. Words are those of the raw line (nmtkit/text/words.py), or tokens of another
tokenisation of it. Pieces spell the normalised line, which may have other words: `words_of_pieces`
has the words of each piece.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise, takewhile
from operator import eq

from nmtkit.errors import DataError
from nmtkit.symbols import UNK_ID
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.text.words import words_of_spans

Link = tuple[int, int]
"""Indices of a source word and a target word, from 0."""

_LONGEST_COMPARED = 500
"""Characters between the first and the last difference of two texts, up to which equal parts are
looked for; the time is cubic."""

_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")


@dataclass(frozen=True)
class Links:
    """The links of a line.

    Attributes:
        sure: links that an alignment should have.
        possible: links that it may have; the sure ones are among them.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_links(line: str, first: int = 0) -> Links:
    """Return the links of a line; a blank line has none.

    Args:
        line: links between white space, in any order; repeated ones count once.
        first: number of the first word.

    Raises:
        DataError: something is not a link, or it has a smaller number.
    """
    sure, possible = set(), set()
    for text in line.split():
        found = _LINK.fullmatch(text)
        if found is None:
            raise DataError(
                f"{text!r} is no link; write SOURCE-TARGET, such as 0-2, or 0p2 for a possible one"
            )
        link = int(found[1]) - first, int(found[3]) - first
        if min(link) < 0:
            raise DataError(f"the link {text} is before word {first}; do these count from 0?")
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


def with_words_before(line: str, num_words: int) -> str:
    """Return a line of links whose source has more words at its beginning."""
    matches = _LINK.finditer(line)
    return " ".join(f"{int(one[1]) + num_words}{one[2]}{one[3]}" for one in matches)


def check_links(links: Iterable[Link], num_words: tuple[int, int]) -> None:
    """Raise DataError for a link to a word that the source or the target does not have."""
    for source, target in links:
        if source >= num_words[0] or target >= num_words[1]:
            raise DataError(
                f"the link {source}-{target} is outside the line, which has {num_words[0]} source "
                f"words and {num_words[1]} target words; links count words from 0"
            )


def words_of_pieces(
    vocabulary: Vocabulary, ids: Sequence[int], words: Sequence[str], line: str | None = None
) -> list[range]:
    """Return the words of a raw line that each of its pieces is part of.

    Where the normalised line has other characters than the words, each normalised by itself, the
    nearest ones correspond.

    Args:
        vocabulary: the vocabulary that segmented the line.
        ids: the pieces, or the first of them, without tags and end symbol.
        words: the words of the raw line, or its tokens by another tokeniser.
        line: the raw line, for the text of unknown pieces; None = that is as `words` has it.

    Returns:
        Ranges in order; each has a word, and together they have all words whose characters the
        normalised line has.
    """
    if line is None or UNK_ID not in ids:
        texts = list(map(_bare, vocabulary.texts(ids)))
    else:
        texts = list(map(_bare, vocabulary.spell(line)[: len(ids)]))
    bare = list(map(_bare, words))
    if "".join(texts) != "".join(bare):
        bare = [_bare(vocabulary.normalize(word)) for word in words]
    spans = [*pairwise(accumulate(map(len, bare), initial=0))]
    return words_of_spans(_spans_alike("".join(bare), texts), spans)


def in_order(links: Iterable[Link]) -> list[Link]:
    """Return links by target, then by source."""
    return sorted(links, key=lambda link: link[::-1])


def links_of_pieces(
    links: Collection[Link], source: Sequence[range], target: Sequence[range]
) -> list[Link]:
    """Return the links between pieces whose words are linked, by target and then by source.

    Args:
        links: between words.
        source, target: the words of each piece, as `words_of_pieces` returns them.
    """
    pieces_of: dict[int, list[int]] = {}
    for piece, words in enumerate(source):
        for word in words:
            pieces_of.setdefault(word, []).append(piece)
    sources_of: dict[int, set[int]] = {}
    for source_word, target_word in links:
        sources_of.setdefault(target_word, set()).update(pieces_of.get(source_word, ()))
    found = (set().union(*(sources_of.get(word, ()) for word in words)) for words in target)
    return [(piece, place) for place, pieces in enumerate(found) for piece in sorted(pieces)]


def _bare(text: str) -> str:
    """Return a text without spaces and differences of case, for comparisons."""
    return "".join(text.split()).casefold()


def _spans_alike(text: str, parts: Sequence[str]) -> list[tuple[int, int]]:
    """Return where in a text the parts of an alike text begin and end.

    What the other text lacks is in no part.
    """
    other = "".join(parts)
    known = _known_places(other, text)
    places = [place for place, _ in known]
    return [
        (
            _image(begin, known, bisect_right(places, begin) - 1),
            _image(end, known, bisect_left(places, end) - 1),
        )
        for begin, end in pairwise(accumulate(map(len, parts), initial=0))
    ]


def _known_places(one: str, other: str) -> list[tuple[int, int]]:
    """Return places that correspond in two texts; between them, places are in proportion."""
    begin = _num_equal(one, other)
    num_last = _num_equal(one[begin:][::-1], other[begin:][::-1])
    ends = len(one) - num_last, len(other) - num_last
    found = [(0, 0), (begin, begin)]
    parts = one[begin : ends[0]], other[begin : ends[1]]
    if max(map(len, parts)) <= _LONGEST_COMPARED:
        for block in SequenceMatcher(None, *parts, autojunk=False).get_matching_blocks():
            place = begin + block.a, begin + block.b
            found += [place, (place[0] + block.size, place[1] + block.size)]
    return [*found, ends, (len(one), len(other))]


def _num_equal(one: str, other: str) -> int:
    """Return the number of equal characters at the beginning."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _image(place: int, known: Sequence[tuple[int, int]], index: int) -> int:
    """Return the image of a place after a known one, whose index is given."""
    (begin, first), (end, last) = (
        known[max(0, min(n, len(known) - 1))] for n in (index, index + 1)
    )
    return first + (place - begin) * (last - first) // (end - begin) if end > begin else last
