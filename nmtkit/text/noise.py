"""Noise on the text of training pairs: capitals, typing errors, missing marks, joined lines.

Ids become text that may be changed, and ids again: tags and language symbols at the beginning of a
line stay ids, and a line with other entries that stay whole, those of --whole-tokens, is unchanged.
`MODIFIERS` in nmtkit/config/training_rules.py has the names of the modifiers, and their order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from nmtkit.config.metrics import base_language
from nmtkit.symbols import EOS_ID, UNK_ID
from nmtkit.text import words
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import SPACE_SYMBOL, Subword
from nmtkit.text.subword_file import SubwordFile
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.text.words import joined, letter_spans, words_of


class EditableText:
    """Converts ids of a vocabulary to text that may be changed, and back."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Find the entries that stay whole."""
        self._vocabulary = vocabulary
        self._whole = whole_entries(vocabulary)

    def decode(self, ids: Sequence[int]) -> tuple[list[int], str] | None:
        """Return the line that ids, with the end symbol, spell.

        Returns:
            The ids of the tags and language symbols at its beginning, and the text of the rest.
            None if encoding this text would not give these ids: it has unknown words or broken
            characters, or its vocabulary was not the one that segmented it. Also if entries that
            stay whole are within it.
        """
        first = self.num_symbols(ids)
        rest = [*ids[first:-1]]
        text = self._vocabulary.decode(rest)
        is_exact = text and self._vocabulary.encode(text) == rest
        return ([*ids[:first]], text) if is_exact and self._is_plain(rest) else None

    def encode(self, symbols: Sequence[int], text: str) -> list[int] | None:
        """Return the ids of a line with the end symbol.

        Args:
            symbols: ids of the tags and language symbols at its beginning.
            text: the rest.

        Returns:
            None if there is no text, a word of it is unknown, or an entry that stays whole.
        """
        ids = self._vocabulary.encode(text)
        return [*symbols, *ids, EOS_ID] if ids and self._is_plain(ids) else None

    def num_symbols(self, ids: Sequence[int]) -> int:
        """Return the number of ids of the tags and language symbols at the beginning."""
        end = 0
        while self._whole:
            # A symbol that does not include the space before it follows a space of its own.
            place = end + (self._vocabulary.piece(ids[end]) == SPACE_SYMBOL)
            if place >= len(ids) or ids[place] not in self._whole:
                break
            end = place + 1
        return end

    def _is_plain(self, ids: Sequence[int]) -> bool:
        """Return whether ids are of text alone."""
        return UNK_ID not in ids and self._whole.isdisjoint(ids)


def whole_entries(vocabulary: Vocabulary) -> frozenset[int]:
    """Return the ids of entries that stay whole: tags, language symbols, --whole-tokens."""
    if isinstance(vocabulary, Subword):
        return frozenset(SubwordFile.of(vocabulary.model).whole)
    if isinstance(vocabulary, MarianVocabulary):
        pieces = {*SubwordFile.of(vocabulary.model).whole.values()}
        entries = map(vocabulary.piece, range(vocabulary.size))
        return frozenset(
            index
            for index, piece in enumerate(entries)
            if piece in pieces or vocabulary.split_symbol(piece)[0] == piece
        )
    return frozenset()


WORDS_PER_TYPO = 10

_FINAL_MARKS = (
    words.FULL_STOPS + words.WIDE_FULL_STOPS,
    words.EXCLAMATION_MARKS + words.WIDE_EXCLAMATION_MARKS,
    words.QUESTION_MARKS + words.WIDE_QUESTION_MARKS + ";\u037e",  # those of Greek
)
_ANY_FINAL_MARK = "".join(_FINAL_MARKS)
_DOTTED_I = "\u0130"
_TO_GEORGIAN = {place + 0x1C90 - 0x10D0: place for place in range(0x10D0, 0x1100)}
"""Capitals of Georgian letters, which keyboards and most fonts lack, to these letters."""
_OPENING_MARKS = {"!": "\u00a1", "?": "\u00bf"}
"""Marks of Spanish, by the mark at the end of the same sentence."""


@dataclass(frozen=True)
class Texts:
    """The text of a pair.

    Attributes:
        source, target: a line each.
        source_lang: language of the source.
    """

    source: str
    target: str
    source_lang: str = ""


def join(first: Texts, second: Texts) -> Texts:
    """Join two pairs, on both sides."""
    return replace(
        first,
        source=joined([first.source, second.source], are_sentences=True),
        target=joined([first.target, second.target], are_sentences=True),
    )


def drop_final_punctuation(texts: Texts, _random: Random) -> Texts:
    """Drop the final marks of both sides, if they are of the same kind and other text remains."""
    ends = texts.source[-1:], texts.target[-1:]
    if not any(all(end and end in kind for end in ends) for kind in _FINAL_MARKS):
        return texts
    source, target = map(_without_final_marks, (texts.source, texts.target))
    shorter = replace(texts, source=source, target=target)
    return shorter if _has_text(shorter.source) and _has_text(shorter.target) else texts


def add_typos(texts: Texts, random: Random) -> Texts:
    """Make one typing error per ten words of the source, at least one."""
    source = texts.source
    for _ in range(max(1, len(words_of(source)) // WORDS_PER_TYPO)):
        source = _with_typo(source, random)
    return replace(texts, source=source)


def capitalize_words(texts: Texts, _random: Random) -> Texts:
    """Capitalize each word of the source."""
    has_dotted_i = _has_dotted_i(texts.source_lang)
    capitalized = (_capitalized(word, has_dotted_i) for word in texts.source.split(" "))
    return replace(texts, source=" ".join(capitalized))


def upper_case(texts: Texts, _random: Random) -> Texts:
    """Write the source in capitals; Georgian has none, except in Unicode."""
    source = texts.source
    if _has_dotted_i(texts.source_lang):
        source = source.replace("i", _DOTTED_I)
    return replace(texts, source=source.upper().translate(_TO_GEORGIAN))


Modifier = Callable[[Texts, Random], Texts]

SOURCE_MODIFIERS: dict[str, Modifier] = {
    "typo": add_typos,
    "title": capitalize_words,
    "upper": upper_case,
}
"""Modifiers of the source alone, which keep its spaces; the target may be missing."""

MODIFIERS = {"drop-final-punctuation": drop_final_punctuation, **SOURCE_MODIFIERS}
"""Modifiers of one pair; `join` makes one pair of two."""


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
    """Swap, leave out, double, add or replace a letter of those in the text, with its marks.

    Only letters next to others are changed.
    """
    letters = dict(letter_spans(text))
    ends = {*letters.values()}
    places = [(start, end) for start, end in letters.items() if start in ends or end in letters]
    if not places:
        return text
    start, end = random.choice(places)
    letter, following = text[start:end], text[end : letters.get(end)]
    other = text[slice(*random.choice(places))]
    other = other.upper() if letter.isupper() else other.lower()
    kind = random.choice(("swap", "leave out", "double", "add", "replace"))
    typed = 2 * letter
    if kind == "leave out":
        typed = ""
    elif kind == "add":
        typed = letter + other
    elif kind == "replace" and other != letter:
        typed = other
    elif kind == "swap" and end in letters and following != letter:
        return f"{text[:start]}{following}{letter}{text[letters[end] :]}"
    return f"{text[:start]}{typed}{text[end:]}"


def _has_dotted_i(lang: str) -> bool:
    """Return whether the capital of i has a dot, and I is that of the dotless one."""
    return base_language(lang) in ("tr", "tur", "az", "aze", "azj", "azb")


def _capitalized(word: str, has_dotted_i: bool) -> str:
    """Capitalize the first letter of a word, unless a digit precedes it."""
    first = next((place for place, sign in enumerate(word) if sign.isalnum()), 0)
    letter = word[first : first + 1]
    capital = _DOTTED_I if has_dotted_i and letter == "i" else letter.title()
    return word[:first] + capital + word[first + 1 :]
