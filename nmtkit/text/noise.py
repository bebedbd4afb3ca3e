"""Noise on the text of training pairs: capitals, typing errors, missing marks, joined lines.

`MODIFIERS` in nmtkit/config/noise.py has facts about the modifiers, under the same names. Those of
the source alone keep the number of its words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

WORDS_PER_TYPO = 10

_FULL_STOPS = ".\u2026\u3002\uff0e\uff61\u0964\u0965\u06d4\u104b\u1362\u0589\u17d4"
_EXCLAMATION_MARKS = "!\uff01"
_QUESTION_MARKS = "?\uff1f\u061f;\u037e\u1367"
"""The semicolon is the question mark of Greek."""

_FINAL_MARKS = (_FULL_STOPS, _EXCLAMATION_MARKS, _QUESTION_MARKS)
_ANY_FINAL_MARK = "".join(_FINAL_MARKS)
_OPENING_MARKS = {"!": "\u00a1", "?": "\u00bf"}
"""Marks of Spanish, by the mark at the end of the same sentence."""

_LETTERS = re.compile(r"[^\W\d_]{2,}")
"""At least two letters in a row, of any script."""

_WITHOUT_SPACES = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff60]")
"""Characters of Chinese and Japanese, which separate no sentences by spaces."""


@dataclass(frozen=True)
class Texts:
    """The text of a pair."""

    source: str
    target: str


def join(first: Texts, second: Texts) -> Texts:
    """Join two pairs, on both sides."""
    return Texts(_join_lines(first.source, second.source), _join_lines(first.target, second.target))


def drop_final_punctuation(texts: Texts, _random: Random) -> Texts:
    """Drop the final marks of both sides, if they are of the same kind and other text remains."""
    ends = texts.source[-1:], texts.target[-1:]
    if not any(all(end and end in kind for end in ends) for kind in _FINAL_MARKS):
        return texts
    shorter = Texts(_without_final_marks(texts.source), _without_final_marks(texts.target))
    return shorter if _has_text(shorter.source) and _has_text(shorter.target) else texts


def add_typos(texts: Texts, random: Random) -> Texts:
    """Make one typing error per ten words of the source, at least one."""
    source = texts.source
    for _ in range(max(1, len(source.split()) // WORDS_PER_TYPO)):
        source = _with_typo(source, random)
    return replace(texts, source=source)


def capitalize_words(texts: Texts, _random: Random) -> Texts:
    """Capitalize each word of the source."""
    return replace(texts, source=" ".join(map(_capitalized, texts.source.split(" "))))


def upper_case(texts: Texts, _random: Random) -> Texts:
    """Write the source in capitals."""
    return replace(texts, source=texts.source.upper())


MODIFIERS: dict[str, Callable[[Texts, Random], Texts]] = {
    "drop-final-punctuation": drop_final_punctuation,
    "typo": add_typos,
    "title": capitalize_words,
    "upper": upper_case,
}
"""Modifiers of one pair; `join` makes one pair of two."""


def _join_lines(first: str, second: str) -> str:
    is_spaceless = _WITHOUT_SPACES.search(first[-1:] + second[:1])
    return f"{first}{'' if is_spaceless else ' '}{second}"


def _without_final_marks(text: str) -> str:
    shorter = text.rstrip(_ANY_FINAL_MARK)
    for mark, opening in _OPENING_MARKS.items():
        if mark in text[len(shorter) :]:
            before, _, after = shorter.rpartition(opening)
            shorter = before + after
    return shorter.rstrip()


def _has_text(text: str) -> bool:
    return any(map(str.isalnum, text))


def _with_typo(text: str, random: Random) -> str:
    """Swap, leave out, double, add or replace a letter; the letters of the text do not change."""
    places = [place for run in _LETTERS.finditer(text) for place in range(*run.span())]
    if not places:
        return text
    place = random.choice(places)
    letter, following = text[place], text[place + 1 : place + 2]
    other = text[random.choice(places)]
    other = other.upper() if letter.isupper() else other.lower()
    kind = random.choice(("swap", "leave out", "double", "add", "replace"))
    typed = 2 * letter
    if kind == "leave out":
        typed = ""
    elif kind == "add":
        typed = letter + other
    elif kind == "replace" and other != letter:
        typed = other
    elif kind == "swap" and following != letter and place + 1 in places:
        return f"{text[:place]}{following}{letter}{text[place + 2 :]}"
    return f"{text[:place]}{typed}{text[place + 1 :]}"


def _capitalized(word: str) -> str:
    """Capitalize the first letter of a word, unless a digit precedes it."""
    first = next((place for place, sign in enumerate(word) if sign.isalnum()), 0)
    return word[:first] + word[first : first + 1].title() + word[first + 1 :]
