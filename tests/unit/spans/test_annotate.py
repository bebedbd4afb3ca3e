"""Annotations of random pairs: their text and links stay, and their marks pair and nest."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.spans.annotate import Annotator, LinkedPair, Pieces, space_of
from nmtkit.symbols import EOS_ID
from nmtkit.text.marks import Marks
from nmtkit.text.subword import Subword
from nmtkit.text.words import word_and_punctuation_spans

KINDS = ("placeholders", "tags", "terms")
NAMES = "Zyxwvuts"  # of several pieces
WORDS = [
    "the",
    "old",
    "house",
    "(big).",
    "12",
    "http://a.example/b",
    NAMES,
    "\u732b\u304c",
    "\u5ea7",
]
LINES = [" ".join(WORDS)] * 3 + ["the old house (big)."] * 40
MANY = 300


@cache
def vocabulary() -> Subword:
    return Subword.train(LINES, "bpe", 340, "xx").with_marks(5)


def marks() -> Marks:
    found = vocabulary().marks
    assert found
    return found


@st.composite
def pairs(draw: st.DrawFn) -> LinkedPair:
    """Draw two lines and links between their pieces, in scripts with and without spaces."""
    sides = [
        [*vocabulary().encode(draw(st.sampled_from(["", " "])).join(draw(WORDS_OF_LINE))), EOS_ID]
        for _ in range(2)
    ]
    source, target = ([*range(len(ids) - 1)] for ids in sides)
    possible = [*product(source, target)]
    links = draw(st.sets(st.sampled_from(possible), max_size=8)) if possible else set()
    if draw(st.booleans()):
        links = {one for one in possible if one[0] == one[1]}
    return LinkedPair(sides[0], sides[1], sorted(links, key=lambda link: link[::-1]))


WORDS_OF_LINE = st.lists(st.sampled_from(WORDS), max_size=6)
DRAWS = st.dictionaries(st.sampled_from(KINDS), st.integers(1, 2**64 - 1), min_size=1)


def annotated(pair: LinkedPair, draws: dict[str, int]) -> LinkedPair:
    return Annotator(vocabulary(), vocabulary()).annotate(pair, (0, 0), draws)


def kept(ids: Sequence[int]) -> list[int]:
    return [ids[place] for place in marks().places_of_text(ids)]


def read_tags(ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the range of each numbered element among the ids of text; marks must nest."""
    found: dict[int, tuple[int, int]] = {}
    stack: list[tuple[int, int]] = []
    text = [*marks().places_of_text(ids)]
    for place, index in enumerate(ids):
        now = sum(one < place for one in text)
        if index in marks().openings:
            stack.append((marks().openings.index(index), now))
        elif index in marks().closings:
            number, start = stack.pop()
            assert number == marks().closings.index(index)
            assert number not in found
            found[number] = start, now
        elif index in marks().empties:
            number = marks().empties.index(index)
            assert number not in found
            found[number] = now, now
    assert not stack
    return found


@given(pairs(), DRAWS)
def test_without_marks_an_annotated_pair_is_the_pair(
    pair: LinkedPair, draws: dict[str, int]
) -> None:
    draws.pop("placeholders", None)
    found = annotated(pair, draws)
    assert kept(found.source) == [*pair.source]
    assert kept(found.target) == [*pair.target]
    assert marks().term not in found.target
    texts = [[*marks().places_of_text(ids)] for ids in (found.source, found.target)]
    own = [(s, t) for s, t in found.links if found.target[t] not in marks().ids]
    assert own == [(texts[0][s], texts[1][t]) for s, t in pair.links]
    marked = [(found.source[s], t) for s, t in found.links if found.target[t] in marks().ids]
    assert marked == [(one, t) for t, one in enumerate(found.target) if one in marks().ids]


@given(pairs(), DRAWS)
def test_marks_pair_and_nest_in_the_same_way_on_both_sides(
    pair: LinkedPair, draws: dict[str, int]
) -> None:
    found = annotated(pair, draws)
    source, target = map(read_tags, (found.source, found.target))
    assert sorted(source) == sorted(target) == [*range(len(source))]
    used = marks().ids - {marks().term, marks().term_end}
    assert used.intersection(found.source) == used.intersection(found.target)
    starts = [place for place, index in enumerate(found.source) if index in numbered()]
    in_order = [numbered()[found.source[place]] for place in starts]
    assert in_order == sorted(in_order)  # the nth tag has mark n
    for one, other in product(source, source):
        for relation in (is_within, lambda a, b: is_within(b, a)):
            if source[one] != source[other] and target[one] != target[other]:
                own = relation(source[one], source[other])
                assert own == relation(target[one], target[other]) or is_empty(source, one, other)


def numbered() -> dict[int, int]:
    both = [*enumerate(marks().openings), *enumerate(marks().empties)]
    return {index: number for number, index in both}


def is_within(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


def is_empty(found: dict[int, tuple[int, int]], *numbers: int) -> bool:
    """Return whether an element has no words, so that it touches others on one side only."""
    return any(found[number][0] == found[number][1] for number in numbers)


@given(pairs(), st.integers(1, 2**64 - 1))
def test_tags_enclose_phrase_pairs(pair: LinkedPair, draw: int) -> None:
    found = annotated(pair, {"tags": draw})
    source, target = map(read_tags, (found.source, found.target))
    whole = (0, len(pair.source) - 1), (0, len(pair.target) - 1)
    for number in source:
        if source[number][0] == source[number][1]:
            continue
        own = range(*source[number]), range(*target[number])
        assert all((s in own[0]) == (t in own[1]) for s, t in pair.links)
        is_linked = any(s in own[0] for s, _ in pair.links)
        assert is_linked or (source[number], target[number]) == whole
        for ids, places in ((pair.source, own[0]), (pair.target, own[1])):
            texts = vocabulary().texts(ids[:-1])
            text, first = "".join(texts), len("".join(texts[: places.start]))
            last = first + len("".join(texts[places.start : places.stop]))
            words = word_and_punctuation_spans(text)
            assert not any(a < edge < b for a, b in words for edge in (first, last))


@given(pairs(), st.integers(1, 2**64 - 1))
def test_a_placeholder_stands_for_the_same_text_on_both_sides(pair: LinkedPair, draw: int) -> None:
    found = annotated(pair, {"placeholders": draw})
    patterns = [pattern_of(ids) for ids in (found.source, found.target)]
    texts = ["".join(vocabulary().texts(ids)) for ids in (pair.source, pair.target)]
    matches = [re.fullmatch(*both) for both in zip(patterns, texts, strict=True)]
    assert matches[0] is not None
    assert matches[1] is not None
    assert matches[0].groupdict() == matches[1].groupdict()


def pattern_of(ids: Sequence[int]) -> str:
    """Return an expression of the lines that ids with placeholders can stand for."""
    parts = (
        rf"(?P<n{index}>\S+?)" if index in marks().empties else re.escape(text)
        for index, text in zip(ids, vocabulary().texts(ids), strict=True)
    )
    return "".join(parts)


def test_every_kind_is_drawn() -> None:
    line = vocabulary().encode(" ".join(WORDS))
    pair = LinkedPair([*line, EOS_ID], [*line, EOS_ID], [(n, n) for n in range(len(line))])
    found = [annotated(pair, dict.fromkeys(KINDS, draw)) for draw in range(1, MANY)]
    for ids in (marks().openings[2], marks().empties[0], marks().term):
        assert any(ids in one.source for one in found)
    assert annotated(found[0], {"tags": 1}) == found[0]  # a pair that has marks


def test_spaces_alone_are_no_term() -> None:
    source = vocabulary().encode("the house")
    target = [*source, *space_of(vocabulary())]
    links = [(one, len(source)) for one in range(len(source))]
    pair = LinkedPair([*source, EOS_ID], [*target, EOS_ID], links)
    assert all(annotated(pair, {"terms": draw}) == pair for draw in range(1, MANY))


def test_words_may_be_separated_at_borders_only() -> None:
    pieces = Pieces([" ", "ho", "use", ".", " ", "\u732b\u304c", "", "\u5ea7"], first=0)
    assert pieces.borders == [0, 3, 4, 6, 8]
    assert pieces.widened(2, 3) == (0, 3)
    assert pieces.of_text(1, 6) == (0, 3)
    assert pieces.of_text(2, 6) is None
