import pytest

from nmtkit.text.scripts import NAMES_OF_SCRIPTS, is_mostly

SAMPLES = {
    "latin": "Stra\u00dfe \u0153uvre",
    "cyrillic": "\u043f\u0440\u0438",
    "greek": "\u03b1\u03b2\u03b3",
    "arabic": "\u0627\u0628\u062a",
    "hebrew": "\u05d0\u05d1\u05d2",
    "armenian": "\u0531\u0532",
    "georgian": "\u10d0\u10d1",
    "ethiopic": "\u1200\u1201",
    "devanagari": "\u0905\u0906",
    "bengali": "\u0985\u0986",
    "tamil": "\u0b85\u0b86",
    "thai": "\u0e01\u0e02",
    "han": "\u4e2d\u6587",
    "japanese": "\u3072\u3089\u30ab\u30ca\u4ed5\u4e8b",
    "korean": "\ud55c\uad6d",
}


@pytest.mark.parametrize("script", NAMES_OF_SCRIPTS)
def test_a_line_is_of_its_own_script(script: str) -> None:
    found = {name for name in NAMES_OF_SCRIPTS if is_mostly(SAMPLES[script], name)}
    related = {"han": {"han", "japanese", "korean"}}
    assert found == related.get(script, {script})


def test_what_is_no_letter_does_not_count() -> None:
    assert is_mostly("12 345, \u2014 \U0001f600", "greek")
    assert is_mostly("", "latin")
    assert is_mostly("a 1234567890 !!!", "latin")


def test_half_of_the_letters_is_enough() -> None:
    assert is_mostly("ab\u03b1\u03b2", "greek")
    assert not is_mostly("abc\u03b1\u03b2", "greek")


def test_wide_letters_are_letters_of_their_script() -> None:
    assert is_mostly("\uff21\uff22", "latin")
    assert is_mostly("\uff76\uff85", "japanese")
