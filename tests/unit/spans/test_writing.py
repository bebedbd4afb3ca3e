"""Translations with markup: examples of each rule, and laws for all lines, texts and links."""

import xml.etree.ElementTree as ET
from collections import Counter
from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.spans.markup import read_markup, structure
from nmtkit.spans.writing import write_markup
from nmtkit.text.words import word_spans, words_of
from tests.unit.spans.lines import marked_lines, tidy_lines

TARGET_WORDS = [
    "Datei", "speichern", "\u00fcber", "\u0633\u0644\u0627\u0645\u061f", "\u0939\u093f\u0928\u0940",
    "(ab", "c).", "x,", "!", "R&D", "a<b", "\u201ez\u201c", "\u4fdd\u5b58\u3002",
    "\u0e19\u0e49\u0e33",
]  # fmt: skip


def translations() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(TARGET_WORDS), max_size=8).map(" ".join)


def links(text: str, translation: str, data: st.DataObject) -> list[tuple[int, int]]:
    """Draw any links, or none."""
    counts = len(words_of(text)), len(words_of(translation))
    if not all(counts):
        return []
    source, target = (st.integers(0, count - 1) for count in counts)
    return sorted(data.draw(st.sets(st.tuples(source, target), max_size=8)))


def same_words(text: str) -> list[tuple[int, int]]:
    return [(word, word) for word in range(len(words_of(text)))]


def written(line: str, translation: str, pairs: str, language: str = "xml") -> str:
    """Write markup by links such as `0-1 2-0`."""
    found = [(int(one.split("-")[0]), int(one.split("-")[1])) for one in pairs.split()]
    return write_markup(read_markup(line, language), translation, found, {})


class Example(TypedDict):
    line: str
    links: str
    output: str


EXAMPLES: list[Example] = [
    # Elements around their words, wherever these are.
    {"line": "Click <b>Save</b> now", "links": "0-1 1-2 2-0",
     "output": "Jetzt klicken <b>Speichern</b>"},
    {"line": "<b>a b</b> c", "links": "0-2 1-0 2-1", "output": "<b>X</b> Y Z"},
    {"line": "<b>a b c</b> d", "links": "0-0 1-3 2-4 3-1 3-2", "output": "X Y Z <b>V W</b>"},
    {"line": "<b>a</b> <i>b</i>", "links": "0-1 1-0", "output": "<i>X</i> <b>Y</b>"},
    {"line": "a <b>b <i>c</i></b>", "links": "0-2 1-1 2-0", "output": "<b><i>X</i> Y</b> Z"},
    {"line": "<b>a <i>b</i></b> c", "links": "0-0 1-2 2-1", "output": "<b>X<i></i></b> Y Z"},
    # Edges of the line.
    {"line": "<p>a b</p>", "links": "0-1", "output": "<p>X Y Z.</p>"},
    {"line": "<b>a</b> b", "links": "0-1 1-2", "output": "<b>X Y</b> Z"},
    {"line": "a <b>b.</b>", "links": "0-0 1-1", "output": "X <b>Y Z.</b>"},
    {"line": "<b>a</b>.", "links": "0-0", "output": "<b>X</b>."},
    # Punctuation at the edges.
    {"line": "(<b>a</b>), b", "links": "0-0 1-1", "output": "(<b>X</b>), Y"},
    {"line": "<b>(a)</b>, b", "links": "0-0 1-1", "output": "<b>(X)</b>, Y"},
    {"line": "<b>a</b> b", "links": "0-0 1-1", "output": "<b>X</b>, Y"},
    {"line": "<b>a.</b> b", "links": "0-0 1-1", "output": "<b>X\u3002</b>Y"},
    {"line": "a <b>b</b> c", "links": "0-0 1-1 2-2", "output": "X <b>[Y]</b> Z"},
    {"line": "a <b>b c</b> d", "links": "0-0 1-1 2-2 3-3", "output": "X <b>Y (Z)</b> V"},
    {"line": "a <b>#b#</b> c", "links": "0-0 1-1 2-2", "output": "X <b>#b#</b> Y"},
    # Words that are copied.
    {"line": "H<sub>2</sub>O. a", "links": "0-1 1-0", "output": "X H<sub>2</sub>O"},
    {"line": "<i>1</i>/<i>2</i> a", "links": "0-1 1-0", "output": "X <i>1</i>/<i>2</i>"},
    {"line": "un<b>believ</b>able a", "links": "0-0 1-1", "output": "<b>unglaublich</b> X"},
    # Marks.
    {"line": "a <x/> b", "links": "0-1 1-0", "output": "Y X <x/>"},
    {"line": "a<x/> b", "links": "0-0 1-1", "output": "X<x/> Y"},
    {"line": "a <x/>b c", "links": "0-0 1-2 2-1", "output": "X Z <x/>Y"},
    {"line": "<x/> a <y/>", "links": "0-1", "output": "<x/> X Y Z <y/>"},
    {"line": "a <x/> <y/><z/> b", "links": "0-0 1-1", "output": "X <x/> <y/><z/> Y"},
    {"line": "a <x/>. b", "links": "0-0 1-1", "output": "X <x/>. Y"},
    {"line": "a <x/> b", "links": "0-0 1-1", "output": "X, <x/> Y"},
    {"line": "<b><x/>a</b> b", "links": "0-1 1-0", "output": "Y <b><x/>X</b>"},
    {"line": "a <b></b> b", "links": "0-0 1-1", "output": "X <b></b> Y"},
    # Words without links.
    {"line": "a <b>b</b> c", "links": "0-0 2-2", "output": "X <b>Y</b> Z"},
    {"line": "a <b>b</b> c", "links": "0-0 2-1", "output": "X<b></b> Z"},
    # Breaks.
    {"line": "a<br/>b", "links": "0-0 1-1", "output": "X<br/>Y"},
    {"line": "a<br/>b c", "links": "0-0 1-1 2-2", "output": "\u6211<br/>\u7528\u6237"},
    {"line": "<li>a</li><li>b c</li>", "links": "0-0 1-1 2-2", "output": "<li>X</li><li>Y Z</li>"},
    # References.
    {"line": "10&nbsp;km <b>a</b>", "links": "0-0 1-1 2-2", "output": "10&nbsp;km <b>X</b>"},
    {"line": "a &nbsp; b&#160;!", "links": "0-0 1-1", "output": "X &nbsp; Y&#160;!"},
    {"line": "&quot;a&quot; <b>b</b> < c", "links": "0-0 1-1 3-3",
     "output": "&quot;X&quot; <b>Y</b> &lt; Z&amp;>"},
    {"line": "&gt; &#65; a", "links": "", "output": "A &gt;"},
]  # fmt: skip


def example_id(example: Example) -> str:
    return f"{example['line']} | {example['links']}"


@pytest.mark.parametrize("example", EXAMPLES, ids=example_id)
def test_markup_is_put_around_the_words_that_are_linked(example: Example) -> None:
    translation = read_markup(example["output"], "xml").text
    assert written(example["line"], translation, example["links"]) == example["output"]


@pytest.mark.parametrize(
    ("line", "translation", "output"),
    [
        ("a <b>b</b>", "X Y", "X <b>Y</b>"),
        ("a <b>b</b>", "X Y Z V", "X Y <b>Z V</b>"),
        ("<b>a b</b> c d", "X Y", "<b>X</b> Y"),
        ("a <b>b</b>", "", "<b></b>"),
        ("<b></b>", "X Y", "<b></b> X Y"),
    ],
)
def test_without_links_words_at_the_same_part_are_linked(
    line: str, translation: str, output: str
) -> None:
    assert written(line, translation, "") == output


def test_a_kept_element_replaces_its_place() -> None:
    line = read_markup("<b>Press <kbd>A&amp;B</kbd></b> now.", "html")
    (kept,) = line.kept
    assert (kept.start, kept.end) == (6, 9)
    output = write_markup(line, "Nun A&B dr\u00fccken.", [(0, 2), (2, 0)], {(6, 9): (4, 7)})
    assert output == "Nun <b><kbd>A&amp;B</kbd> dr\u00fccken</b>."


def test_a_kept_element_without_a_place_is_inserted_as_a_mark() -> None:
    line = "Press <kbd>A</kbd> <b>now</b>."
    output = written(line, "Nun X dr\u00fccken.", "0-2 1-1 2-0", "html")
    assert output == "<b>Nun</b> X dr\u00fccken <kbd>A</kbd>."


def test_no_tag_is_put_within_a_place() -> None:
    line = read_markup("a <b>b</b><x/> c", "xml")
    output = write_markup(line, "X one two Y", [(0, 0), (1, 1), (2, 3)], {(2, 3): (2, 9)})
    assert output == "X <b>one two</b><x/> Y"


@given(marked_lines(), translations(), st.data())
def test_the_plain_text_of_the_output_is_the_translation(
    line: str, translation: str, data: st.DataObject
) -> None:
    read = read_markup(line, "xml")
    output = write_markup(read, translation, links(read.text, translation, data), {})
    assert read_markup(output, "xml").text == translation


@given(marked_lines(), translations(), st.data())
def test_the_output_has_the_tags_of_the_line_each_in_its_parent(
    line: str, translation: str, data: st.DataObject
) -> None:
    read = read_markup(line, "xml")
    output = write_markup(read, translation, links(read.text, translation, data), {})
    ET.fromstring(f"<r>{output}</r>")
    assert structure(output, "xml").nesting == structure(line, "xml").nesting
    assert Counter(structure(output, "xml").tags) == Counter(structure(line, "xml").tags)


@given(tidy_lines())
def test_the_same_text_has_the_same_markup(line: str) -> None:
    with_text = f"{line} x".lstrip()
    read = read_markup(with_text, "xml")
    assert write_markup(read, read.text, same_words(read.text), {}) == with_text


@given(st.text("ab .,>\u6211\u00a0\u200b\u0301'\"", max_size=30), st.sampled_from(["xml", "html"]))
def test_a_line_without_markup_is_not_changed(line: str, language: str) -> None:
    read = read_markup(line, language)
    assert (read.elements, read.references) == ((), ())
    assert write_markup(read, read.text, same_words(read.text), {}) == line


@given(marked_lines(), translations(), st.data())
def test_a_place_is_never_broken(line: str, translation: str, data: st.DataObject) -> None:
    read = read_markup(line, "xml")
    spans = word_spans(read.text), word_spans(translation)
    if not all(spans):
        return
    part, place = (data.draw(st.sampled_from(words)) for words in spans)
    output = write_markup(
        read, translation, links(read.text, translation, data), {part: (place[0], len(translation))}
    )
    rest = translation[place[0] :]
    for character, reference in {"&": "&amp;", "<": "&lt;"}.items():
        rest = rest.replace(character, dict(read.references).get(character, reference))
    assert rest in output
    assert structure(output, "xml").nesting == structure(line, "xml").nesting


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "line",
    [
        "<b>w <x/>" * 2_000 + "</b>" * 2_000,
        "<b><i>" * 1_000 + "x</b></i>" * 1_000,
        "<x/>" * 4_000,
        "<b>x</b> " * 500,
    ],
)
def test_thousands_of_tags_are_written(line: str) -> None:
    read = read_markup(line, "xml")
    output = write_markup(read, "X Y", [], {})
    assert Counter(structure(output, "xml").tags) == Counter(structure(line, "xml").tags)
