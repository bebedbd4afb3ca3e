"""What is required: keys of JSON lines, and texts found in translations."""

from typing import Any

import pytest

from nmtkit.config.translation import PLACEHOLDERS, ConstraintsConfig
from nmtkit.decoding.answers import Request
from nmtkit.errors import DataError
from nmtkit.spans import placeholders
from nmtkit.spans.markup import MarkedLine
from nmtkit.spans.required import Finder, Required, is_word_character
from tests.messages import refuses

ALL = ConstraintsConfig(placeholders=",".join(PLACEHOLDERS))


@pytest.mark.parametrize(
    ("others", "keys"),
    [
        ({"spans": "4-7"}, "line 3 spans; [start, end]"),
        ({"spans": [[4]]}, "line 3 spans [4]; [start, end]"),
        ({"spans": [[4, 7], [6, 9]]}, "line 3 spans [6, 9]; [start, end]"),
        ({"spans": [[4, 70]]}, "line 3 spans [4, 70]; [start, end]"),
        ({"terms": ["sat"]}, "line 3 terms; object"),
        ({"terms": {"sat": []}}, "line 3 terms; object"),
        ({"terms": {"\u200b": ["x"]}}, "line 3 terms; object"),
        ({"terms": {"sat": ["\ud800"]}}, "line 3 terms; halves"),
    ],
    ids=str,
)
def test_malformed_keys_are_refused(others: dict[str, Any], keys: str) -> None:
    with refuses(DataError, keys):
        line = MarkedLine("the cat sat", (), (), is_escaped=False)
        Finder(ALL, str).in_line(line, Request(line.text, others=others), "line 3")


def test_a_longer_text_is_found_before_one_within_it() -> None:
    finder = Finder(ALL, str)
    required = [
        Required("placeholder", 0, 2, ("12",), "12"),
        Required("placeholder", 3, 8, ("12:30",), "12:30"),
    ]
    assert finder.in_translation(required, "at 12:30 or 12").places == ((12, 14), (3, 8))
    assert not finder.in_translation(required, "at 12:30").is_met
    assert not finder.in_translation(required, "at 12:30, 12 or 12").is_met
    assert finder.in_translation(required[:1], "\u572812\u70b9").is_met
    for other in ("x12", "12a", "12.5", "3,12", "112"):
        assert not finder.in_translation(required[:1], other).is_met


@pytest.mark.parametrize(
    ("term", "text", "is_met"),
    [
        ("Generation", "Eine Generation ging.", True),
        ("Generation", "Eine generation ging.", False),
        ("iPhone", "Ein iphone.", False),
        ("great", "Great news", True),  # a sentence may begin with it
        ("great", "GREAT news", False),
    ],
)
def test_a_term_is_written_as_in_the_glossary(term: str, text: str, is_met: bool) -> None:
    required = [Required("term", 0, 5, (term,), None)]
    assert Finder(ALL, str).in_translation(required, text).is_met is is_met


def test_the_kinds_of_placeholders_are_those_of_the_table() -> None:
    assert {*PLACEHOLDERS} == {*placeholders.PLACEHOLDERS}


@pytest.mark.parametrize("text", ["\u0915\u093f", "\u0643\u064e", "na\u0308", "a_", "\u0baa\u0bbf"])
def test_vowel_signs_and_accents_are_of_their_words(text: str) -> None:
    assert all(map(is_word_character, text))


@pytest.mark.parametrize("text", ["", " ", ".", "\u732b", "\u0e01", "\u0e34", "-"])
def test_other_characters_and_those_of_spaceless_scripts_are_of_no_word(text: str) -> None:
    assert not any(map(is_word_character, text or [""]))
