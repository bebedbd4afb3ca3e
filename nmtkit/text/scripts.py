"""The script that a line is written in, by the names that Unicode gives to its letters."""

import re
import unicodedata
from functools import lru_cache

NAMES_OF_SCRIPTS: dict[str, frozenset[str]] = {
    "latin": frozenset({"LATIN"}),
    "cyrillic": frozenset({"CYRILLIC"}),
    "greek": frozenset({"GREEK"}),
    "arabic": frozenset({"ARABIC"}),
    "hebrew": frozenset({"HEBREW"}),
    "armenian": frozenset({"ARMENIAN"}),
    "georgian": frozenset({"GEORGIAN"}),
    "ethiopic": frozenset({"ETHIOPIC"}),
    "devanagari": frozenset({"DEVANAGARI"}),
    "bengali": frozenset({"BENGALI"}),
    "tamil": frozenset({"TAMIL"}),
    "thai": frozenset({"THAI"}),
    "han": frozenset({"CJK"}),
    "japanese": frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    "korean": frozenset({"HANGUL", "CJK"}),
}
"""Words, one of which the name of each letter of a script has."""


def is_mostly(line: str, script: str) -> bool:
    """Tell whether at least half of a line's letters are of a script; so if it has none.

    Args:
        line: any text.
        script: a key of `NAMES_OF_SCRIPTS`.
    """
    letters = [character for character in line if character.isalpha()]
    names = NAMES_OF_SCRIPTS[script]
    num_fitting = sum(not names.isdisjoint(_name(letter)) for letter in letters)
    return 2 * num_fitting >= len(letters)


@lru_cache(maxsize=2**16)
def _name(letter: str) -> tuple[str, ...]:
    """Return the words of a letter's name, such as LATIN SMALL LETTER A."""
    return tuple(re.split("[ -]", unicodedata.name(letter, "")))
