"""Tokens of lines, partners of tags, and words that tags separate."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.spans.tags import MARKUPS, Kind, is_closing, partners_of, separate, tokens_of

LANGUAGES = st.sampled_from(sorted(MARKUPS))
TAGS: list[Literal["<a>", "</a>", "<b>", "</b>", "<x/>"]] = ["<a>", "</a>", "<b>", "</b>", "<x/>"]


def kinds(line: str, language: str) -> list[tuple[Kind, str]]:
    return [(one.kind, one.raw) for one in tokens_of(line, MARKUPS[language])]


@given(st.text("<>/!?-[]CDATA&;#x1\"'= ab", max_size=80), LANGUAGES)
def test_tokens_concatenated_are_the_line(line: str, language: str) -> None:
    tokens = list(tokens_of(line, MARKUPS[language]))
    assert "".join(one.raw for one in tokens) == line
    assert all(line[one.start : one.end] == one.raw for one in tokens)


@pytest.mark.parametrize(
    ("line", "language", "kind"),
    [
        ("<b>", "xml", "opening"),
        ("</b >", "xml", "closing"),
        ("<b/>", "html", "mark"),
        ("<br>", "html", "mark"),
        ("<br>", "xml", "opening"),
        ("</br>", "html", "mark"),
        ("<mrk mtype='x' a:b = \"<>\">", "xml", "opening"),
        ("<a href=x disabled>", "html", "opening"),
        ("<a href=x disabled>", "xml", "text"),
        ("<\u540d\u524d>", "xml", "opening"),
        ("<\u540d\u524d>", "html", "text"),
        ("</b/>", "xml", "text"),
        ("</b c='d'>", "xml", "text"),
        ("<!---->", "xml", "mark"),
        ("<!-->", "xml", "text"),
        ("<![CDATA[]]>", "html", "mark"),
        ("<?a?>", "xml", "mark"),
        ("<? a?>", "xml", "text"),
        ("&lt;", "xml", "text"),
        ("&nbsp;", "xml", "mark"),
        ("&nbsp;", "html", "mark"),
        ("&#8239;", "xml", "mark"),
        ("&#8203;", "xml", "text"),
        ("&#x1F600;", "xml", "text"),
        ("&#1114112;", "html", "mark"),
        ("&#0;", "html", "mark"),
        ("&#9;", "xml", "mark"),
    ],
)
def test_a_token_has_its_kind(line: str, language: str, kind: Kind) -> None:
    assert kinds(line, language) == [(kind, line)]


@given(st.lists(st.sampled_from(TAGS), max_size=12))
def test_partners_are_nested(tags: list[str]) -> None:
    tokens = list(tokens_of("".join(tags), MARKUPS["xml"]))
    partners = partners_of(tokens)
    pairs = [(one, two) for one, two in enumerate(partners) if one < two]
    for one, two in pairs:
        assert partners[two] == one
        assert (tokens[one].kind, tokens[two].kind) == ("opening", "closing")
        assert tokens[one].name == tokens[two].name
        assert not any(one < other < two < end for other, end in pairs)


def test_a_closing_tag_belongs_to_the_nearest_open_tag_of_its_name() -> None:
    tokens = list(tokens_of("<a><b><a></a></b></a></a>", MARKUPS["xml"]))
    assert partners_of(tokens) == [5, 4, 3, 2, 1, 0, -1]


def test_the_deepest_proper_nesting_of_crossing_tags_is_found() -> None:
    tokens = list(tokens_of("<a><b></a></b>", MARKUPS["xml"]))
    assert partners_of(tokens) == [2, -1, 0, -1]


@pytest.mark.parametrize(
    ("tags", "before", "after", "is_separated"),
    [
        ([("mark", False)], "a", "b", False),
        ([("mark", True)], "a", "b", True),
        ([("closing", False), ("opening", False)], "a", "b", True),
        ([("opening", False), ("closing", False)], "a", "b", False),
        ([("mark", True)], "a", ". ", False),
        ([("mark", True)], "a.", ".b", True),
        ([("mark", True)], "(", "b", False),
        ([("mark", True)], "a", '"b', True),
        ([("mark", True)], "z\u201c", "b", True),
        ([("mark", True)], "\u6211", "\u7528", False),
        ([("mark", True)], "a", "\u00a0", False),
    ],
)
def test_breaks_and_neighbouring_elements_separate_words(
    tags: list[tuple[Kind, bool]], before: str, after: str, is_separated: bool
) -> None:
    assert separate(tags, before, after) == is_separated


def test_closing_punctuation_is_that_of_any_script() -> None:
    assert all(map(is_closing, ".,;:!?)]\u00bb\u201d\u3002\uff0c\u061f\u060c\u0964"))
    assert not any(map(is_closing, "a(\u00ab\u201e-%#\u6211 "))
