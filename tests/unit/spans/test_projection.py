"""Places of elements by word alignment: examples by hand, and laws for any links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.spans.edges import Span
from nmtkit.spans.markup import read_markup
from nmtkit.spans.projection import nearest_links, project
from nmtkit.spans.tags import ROOT
from nmtkit.text.words import words_of
from tests.unit.spans.lines import marked_lines


def placed(line: str, target: str, links: list[tuple[int, int]]) -> list[str]:
    """Return the text that each element encloses."""
    read = read_markup(line, "xml")
    spans = project(read.elements, (read.text, target), links, {})
    return [target[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("line", "target", "links", "texts"),
    [
        # One wrong link is outvoted by words that are linked elsewhere.
        ("<b>a b</b> c d", "A B C D A", [(0, 0), (1, 1), (0, 4), (2, 2), (3, 3)], ["A B"]),
        # Words without links between linked ones are enclosed.
        ("a <b>b c</b> d", "A B x C D", [(0, 0), (1, 1), (2, 3), (3, 4)], ["B x C"]),
        # A word that is also linked to others counts.
        ("<b>a</b> b", "AB C", [(0, 0), (1, 0), (1, 1)], ["AB"]),
        # The longer of two goes first; the other has what is left.
        ("<b>a b</b> <i>c</i>", "X Y", [(0, 0), (1, 1), (2, 1)], ["X Y", ""]),
        # An element without links has the word near it that is linked to nothing.
        ("a <b>b</b> c", "A x y C", [(0, 0), (2, 3)], ["x"]),
        ("a <b>b</b> c", "A C", [(0, 0), (2, 1)], [""]),
        # A child stays within its parent.
        ("<b>a <i>b</i></b> c", "A C B", [(0, 0), (1, 2), (2, 1)], ["A", ""]),
    ],
)
def test_an_element_has_the_words_that_are_linked_to_it(
    line: str, target: str, links: list[tuple[int, int]], texts: list[str]
) -> None:
    assert placed(line, target, links) == texts


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_nearest_links_are_in_order_and_reach_every_word(
    num_source: int, num_target: int
) -> None:
    links = nearest_links(num_source, num_target)
    assert links == sorted(links)
    assert [target for _, target in links] == sorted(target for _, target in links)
    if num_source and num_target:
        assert {source for source, _ in links} == set(range(num_source))
        assert {target for _, target in links} == set(range(num_target))


@given(st.integers(0, 12))
def test_the_nearest_links_of_texts_of_the_same_length_are_the_same_words(num_words: int) -> None:
    assert nearest_links(num_words, num_words) == [(word, word) for word in range(num_words)]


def is_apart(one: Span, other: Span) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


@given(
    marked_lines(),
    st.lists(st.sampled_from(["x", "(y)", "z.", "\u4fdd\u5b58"]), max_size=6).map(" ".join),
    st.data(),
)
def test_spans_are_within_their_parents_and_apart_from_their_siblings(
    line: str, target: str, data: st.DataObject
) -> None:
    read = read_markup(line, "xml")
    counts = len(words_of(read.text)), len(words_of(target))
    links: list[tuple[int, int]] = []
    if all(counts):
        words = (st.integers(0, count - 1) for count in counts)
        links = data.draw(st.lists(st.tuples(*words), max_size=8))
    spans = project(read.elements, (read.text, target), links, {})
    for index, (element, span) in enumerate(zip(read.elements, spans, strict=True)):
        parent = (0, len(target)) if element.parent == ROOT else spans[element.parent]
        assert parent[0] <= span[0] <= span[1] <= parent[1]
        for other, sibling in zip(read.elements[:index], spans, strict=False):
            assert other.parent != element.parent or is_apart(span, sibling)
