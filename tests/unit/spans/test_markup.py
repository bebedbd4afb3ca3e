"""Inline markup: plain text and elements of a line, by hand-made tables and by laws."""

import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.spans.markup import MarkedWords, marked_words, read_markup, structure
from tests.unit.spans.lines import marked_lines

PLAIN_TEXTS = {
    # Tags within words, between words, and next to punctuation.
    "un<b>believ</b>able": "unbelievable",
    "Click <b>Save</b>.": "Click Save.",
    "a <x/> b": "a b",
    "<x/> a <y/>": "a",
    "  <b> a </b>  ": "a",
    "a <b>b </b> c": "a b c",
    "Click <x/>.": "Click.",
    "Files: <x/>.dr <b>.png</b>": "Files: .dr .png",
    "Cliquez <b>ici</b> !": "Cliquez ici !",
    "a<x/>b": "ab",
    # Spaces of lines without tags.
    " a  b &amp; c ": " a  b & c ",
    "a\u3000<b>b</b>": "a\u3000b",
    # Breaks, and elements next to each other.
    "One.<br/>Two<br/>.": "One. Two.",
    "<ul><li>One</li><li>two</li></ul>three": "One two three",
    "<m><c>File</c><c>Save</c></m>.": "File Save.",
    "\u6211<br/>\u7528": "\u6211\u7528",
    "(<br/>a": "(a",
    # References.
    "&lt;b&gt; &#65;&#x2014;&apos;": "<b> A\u2014'",
    "a &product; b&c; d&e;f": "a b df",
    "a&nbsp;b": "a b",
    "a&#10;b&#32;c&#0;d&#xD800;e": "a b cde",
    "AT&T & R&D;x": "AT&T & Rx",
    # Text that looks like tags.
    "a < b <3 x<y <- <1> </ b> < i>": "a < b <3 x<y <- <1> </ b> < i>",
    '<a href="x>y': '<a href="x>y',
    "<a b=c> <a b> </a c='d'>": "<a b=c> <a b> </a c='d'>",
    "<!-- a <![CDATA[ b <? c": "<!-- a <![CDATA[ b <? c",
    # Everything that is a mark.
    "a <!-- <b> --> b <![CDATA[<c>]]> c <?d e?> f": "a b c f",
    "<g id='1>' x=\"'/>\"  >a</g\t>": "a",
    "<b>a <i>b</b> c</i>": "a b c",
    "": "",
    "<x/>": "",
}

PLAIN_TEXTS_OF_HTML = {
    "One<BR>two<wbr>three <img src=a.png alt='>'>four": "One twothree four",
    "<a href=x.html disabled title='a b'>a</A>": "a",
    "a&nbsp;b &eacute;&copy; &copy": "a b \u00e9\u00a9 &copy",
    "&#150;&#32;x": "\u2013 x",
    "<john@example.com> <https://a.b/>": "<john@example.com> <https://a.b/>",
    "a</br>b": "a b",
}


@pytest.mark.parametrize(
    ("line", "language", "text"),
    [
        *((line, "xml", text) for line, text in PLAIN_TEXTS.items()),
        *((line, "html", text) for line, text in PLAIN_TEXTS_OF_HTML.items()),
    ],
)
def test_the_plain_text_has_no_tags(line: str, language: str, text: str) -> None:
    assert read_markup(line, language).text == text


@pytest.mark.parametrize(
    ("line", "language", "kept"),
    [
        ("Press <kbd>A&amp;B <b>x</b></kbd>.", "html", [("A&B x", "<kbd>A&amp;B <b>x</b></kbd>")]),
        ("Press <kbd>A</kbd>.", "xml", []),
        ("<i translate='no'> a</i> b", "xml", [("a", "<i translate='no'> a</i>")]),
        ("<i translate=NO>a <code>b</code></i>", "html", [("a b", None)]),
        ("<i translate='yes'>a</i> <i t=\" translate='no'\">b</i>", "xml", []),
        ("<code>a b <var></var><samp>c", "html", []),
    ],
)
def test_elements_that_are_not_translated_are_kept_whole(
    line: str, language: str, kept: list[tuple[str, str | None]]
) -> None:
    read = read_markup(line, language)
    found = [(read.text[one.start : one.end], one.kept) for one in read.kept]
    assert found == [(text, raw or line) for text, raw in kept]


@pytest.mark.parametrize(
    "line", ["<?xml version='1.0'?><a/>", "  <!doctype html>", "<HTML lang=en>", "\t<html>"]
)
def test_a_document_is_refused(line: str) -> None:
    with pytest.raises(DataError, match="a document, not a line of text; extract its text first"):
        read_markup(line, "html")


@pytest.mark.parametrize(
    ("line", "language", "is_well_formed", "nesting"),
    [
        ("<b>a<x/></b>", "xml", True, [("", "<b>"), ("<b>", "<x/>")]),
        ("<b>a <i>b</b> c</i>", "xml", False, [("", "</i>"), ("", "<b>"), ("<b>", "<i>")]),
        ("<B>a</b>", "xml", False, [("", "</b>"), ("", "<B>")]),
        ("<B>a</b>", "html", True, [("", "<B>")]),
        ("<a><a>x</a>", "xml", False, [("", "<a>"), ("", "<a>")]),
        ("<br>&x;", "html", True, [("", "&x;"), ("", "<br>")]),
    ],
)
def test_the_structure_is_the_nesting_of_tags(
    line: str, language: str, is_well_formed: bool, nesting: list[tuple[str, str]]
) -> None:
    found = structure(line, language)
    assert found.is_well_formed == is_well_formed
    assert sorted(found.nesting) == sorted(nesting)


def test_an_element_whose_name_begins_as_that_of_a_document_is_none() -> None:
    assert read_markup("<htmlx>a</htmlx>", "html").text == "a"


def test_the_tags_of_a_structure_are_in_order() -> None:
    assert structure("a <b>c<x/></b>&amp;", "xml").tags == ("<b>", "<x/>", "</b>")


def test_the_words_of_elements_count_from_zero() -> None:
    assert marked_words("Click <b>Save <i id='1'>as</i></b>. <x/>", "xml") == [
        MarkedWords("<b>", "Save as", range(1, 3)),
        MarkedWords("<i id='1'>", "as", range(2, 3)),
    ]


@given(marked_lines())
def test_the_structure_is_that_of_an_xml_library(line: str) -> None:
    found = ET.fromstring(f"<r>{line}</r>")
    names = Counter(one.tag for one in found.iter())
    tags = structure(line, "xml")
    assert tags.is_well_formed
    opened = [tag for _, tag in tags.nesting if not tag.startswith(("<!", "<?"))]
    assert len(opened) == names.total() - 1


@given(marked_lines())
def test_the_plain_text_is_that_of_an_xml_library_up_to_spaces(line: str) -> None:
    text = "".join(ET.fromstring(f"<r>{line}</r>").itertext())
    assert read_markup(line, "xml").text.replace(" ", "") == text.replace(" ", "")


@given(marked_lines())
def test_tags_leave_no_double_spaces_and_none_at_the_edges(line: str) -> None:
    text = read_markup(f"{line}<x/>", "xml").text
    assert "  " not in text
    assert text == text.strip(" ")


@given(st.text('<>/!?-[]&;#"= ab\u200b\u0301\u05d0', max_size=60), st.sampled_from(["xml", "html"]))
def test_any_line_can_be_read(line: str, language: str) -> None:
    read = read_markup(line, language)
    for one in read.elements:
        assert 0 <= one.start <= one.end <= len(read.text)
    assert len(structure(line, language).nesting) >= len(read.elements)


HOSTILE = {
    "nested": "<b>" * 10_000 + "x" + "</b>" * 10_000,
    "never closed": "<b>" * 5_000,
    "never opened": "</b>" * 5_000,
    "crossing": "<b><i>" * 5_000 + "</b></i>" * 5_000,
    "quotes": "<a b=\"<a c='" * 4_000,
    "comments": "<!--" * 8_000 + "<![CDATA[" * 5_000 + "<?a" * 5_000,
    "spaces": "<a" + " " * 30_000 + "<a b" + " " * 30_000,
    "attributes": "<a " + "b='c' " * 5_000,
    "references": "&a" * 20_000 + "&" * 20_000,
    "signs": "<" * 50_000,
    "long": "word " * 200_000,
    "marks": "<x/> " * 5_000,
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", HOSTILE)
def test_reading_takes_linear_time_for(name: str) -> None:
    # Quadratic time would be minutes; the time limit of the tests is the assertion.
    assert len(read_markup(HOSTILE[name], "html").text) <= len(HOSTILE[name])
    assert len(structure(HOSTILE[name], "xml").tags) <= len(HOSTILE[name])
