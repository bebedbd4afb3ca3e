"""What a word is, by script: words of a line, and how lines are split and joined between words.

A word is text between spaces. In scripts without spaces between words, such as Chinese, Japanese
and Thai, each grapheme cluster is a word: a character with its marks. So no package's dictionary
decides, and a text has the same words everywhere.
Source: Unicode Standard Annex #29, https://unicode.org/reports/tr29/ (grapheme clusters); here a
cluster has all marks and vowel signs that follow a letter, also the few that the annex leaves out.

Patterns read a line as classes, one letter per character: see `_class_of`.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

FULL_STOPS = ".\u2026\u0964\u0965\u06d4\u104b\u1362\u0589\u17d4"
WIDE_FULL_STOPS = "\u3002\uff0e\uff61"
EXCLAMATION_MARKS, WIDE_EXCLAMATION_MARKS = "!", "\uff01"
QUESTION_MARKS, WIDE_QUESTION_MARKS = "?\u061f\u1367", "\uff1f"

_WIDE_POINT = "\uff0e"

_FINAL = FULL_STOPS + EXCLAMATION_MARKS + QUESTION_MARKS
_WIDE_FINAL = WIDE_FULL_STOPS + WIDE_EXCLAMATION_MARKS + WIDE_QUESTION_MARKS
"""Marks that end a sentence; the wide ones need no space after them."""

_EAST_ASIAN = (  # Chinese, Japanese, Yi; wide marks, halfwidth kana
    "\u2e80-\u2fff\u3001-\u312f\u3190-\ua4cf\uf900-\ufaff"
    "\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff\U00020000-\U0003ffff"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3e\uff40\uff5b-\uff9f"
)
_SOUTH_EAST_ASIAN = (  # Thai, Lao, Tibetan, Burmese, Khmer, Tai
    "\u0e00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf"
    "\ua9e0-\ua9ff\uaa60-\uaadf\U00011700-\U0001174f"
)
SPACELESS_CHARACTERS = _EAST_ASIAN + _SOUTH_EAST_ASIAN
"""Characters of scripts without spaces between words, as ranges of a regular expression."""

_SPACELESS = re.compile(f"[{SPACELESS_CHARACTERS}]")

_SPACELESS_SENTENCES = re.compile(f"[{_EAST_ASIAN}]")
"""Characters of scripts without spaces between sentences."""

_OTHER_MARKS = "\u0e33\u0eb3\uff9e\uff9f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""Vowel signs, voiced sound marks and skin tones that Unicode calls letters or symbols."""

_DECOMPOSED_VOWELS = re.compile("(?<=\u0e4d)\u0e32|(?<=\u0ecd)\u0eb2")
"""The ends of U+0E33 and U+0EB3 after NFKC, which subwords have."""

_STACKERS = "\u1039\u17d2\u1a60"
"""Signs that put the next letter under the one before: Burmese, Khmer, Tai Tham."""

_ZERO_WIDTH_SPACE, _ZERO_WIDTH_JOINER = "\u200b", "\u200d"

_MARKS = "(?:[mvjf]|(?<=v)c)*"
_CLUSTERS = re.compile(f".{_MARKS}")
_ASCII_WORD = re.compile(r"\S+")
_WORD = re.compile(f"[cCQ]{_MARKS}|[^scCQ]+")
_WORD_OR_MARK = re.compile(
    # A word does not end with characters that nobody sees.
    f"(?:[cCQ]{_MARKS}|w[wmvjf]*|(?:rr|[oeqrmv])(?:[mvjf]|(?<=j)o)*)(?<![jf])"
)

# Where a text can be split, from good to bad: `gap` is left out.
_FINAL_RUN = re.compile("[eC][eCqQmvjf]*+(?P<gap>s?)")
_SPACES = re.compile("(?P<gap>s)")
_BETWEEN_WORDS = re.compile("(?P<gap>s|(?<![vj])(?=c)|(?<=[cCQ])(?=w))")
_BETWEEN_CLUSTERS = re.compile("(?P<gap>)(?<!j)(?:(?<!v)(?=[cw])|(?<!r)(?=r)|(?=[sCQeqo]))")


class _Classes(dict[int, str]):
    """The class of each code point, computed when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class_of(chr(code))
        return found


_CLASSES = _Classes()


def words_of(text: str) -> list[str]:
    """Return the words of a text; punctuation is part of the word next to it.

    In scripts without spaces it is a word of its own. Concatenated, words are the text without
    spaces.
    """
    return [text[start:end] for start, end in word_spans(text)]


def words_and_punctuation(text: str) -> list[str]:
    """Return the words and the punctuation marks of a text, each by itself.

    Such a word is a run of letters and digits with their marks and joiners: `don't` has two, and an
    apostrophe.
    """
    return [text[start:end] for start, end in word_and_punctuation_spans(text)]


def word_and_punctuation_spans(text: str) -> list[tuple[int, int]]:
    """Return where each of `words_and_punctuation` begins and ends."""
    return [match.span() for match in _WORD_OR_MARK.finditer(_classes(text))]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where each of `words_of` begins and ends."""
    if text.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(text)]
    return [match.span() for match in _WORD.finditer(_classes(text))]


def letter_spans(text: str) -> list[tuple[int, int]]:
    """Return where each letter of a text begins and, with its marks, ends."""
    if text.isascii():
        return [(start, start + 1) for start, one in enumerate(text) if one.isalpha()]
    clusters = (match.span() for match in _CLUSTERS.finditer(_classes(text)))
    return [(start, end) for start, end in clusters if text[start].isalpha()]


def words_of_parts(parts: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[range]:
    """Return the words that each part of a text has a character of.

    A space belongs to the word after it, or at the end to the last word; so does an empty part. All
    are of one word if there is none.

    Args:
        parts: concatenated, the text.
        spans: the text's `word_spans`.
    """
    return words_of_spans(pairwise(accumulate(map(len, parts), initial=0)), spans)


def words_of_spans(
    parts: Iterable[tuple[int, int]], spans: Sequence[tuple[int, int]]
) -> list[range]:
    """Return the words of each part of a text, given where the parts begin and end, in order."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    last = max(0, len(spans) - 1)
    found = []
    for begin, end in parts:
        first = min(bisect_right(ends, begin), last)
        found.append(range(first, max(first + 1, bisect_left(starts, end))))
    return found


def is_spaceless(texts: Iterable[str]) -> bool:
    """Return whether most words of texts are of scripts without spaces between words."""
    classes = _classes(" ".join(texts))
    return classes.count("c") > len(re.findall("w[wmvjf]*", classes))


def halves(text: str, *, at_spaces: bool = False) -> tuple[str, str] | None:
    """Split a text near its middle, by the rules of its script; None if that is not possible.

    It is split at the nearest end of a sentence in its middle half; without one, at the nearest
    space there; else at the nearest space or between two words; else between two clusters. The
    space is left out.

    Args:
        text: the text.
        at_spaces: split at spaces only, as for text whose tokens are separated by spaces.
    """
    classes = _classes(text)
    size = len(text)
    middle, quarter = size // 2, size // 4
    spaces = (match.span("gap") for match in _SPACES.finditer(classes))
    places: list[tuple[Iterable[tuple[int, int]], int]] = [(spaces, size)]
    if not at_spaces:
        places = [
            (_sentence_ends(classes), quarter),
            (spaces, quarter),
            *(
                ((match.span("gap") for match in pattern.finditer(classes)), size)
                for pattern in (_BETWEEN_WORDS, _BETWEEN_CLUSTERS)
            ),
        ]
    for found, farthest in places:
        inner = ((start, end) for start, end in found if start < size and end > 0)
        gaps = [(abs(start - middle), start, end) for start, end in inner]
        distance, start, end = min(gaps, default=(size + 1, 0, 0))
        if distance <= farthest:
            return text[:start], text[end:]
    return None


def joined(parts: Iterable[str], *, are_sentences: bool) -> str:
    """Join parts of a line, or sentences, as their script does: by spaces, or without any.

    Thai has no spaces between words, but between sentences; Chinese has none at all.
    """
    spaceless = _SPACELESS_SENTENCES if are_sentences else _SPACELESS
    text = ""
    for part in filter(None, parts):
        is_spaced = text and not spaceless.search(text[-1] + part[0])
        text += f" {part}" if is_spaced else part
    return text


def _classes(text: str) -> str:
    """Return the class of each character of a text."""
    return _DECOMPOSED_VOWELS.sub("\u0e33", text).translate(_CLASSES)


def _sentence_ends(classes: str) -> Iterator[tuple[int, int]]:
    """Yield the gap after each end of a sentence.

    A run of marks is one if it has a wide mark, or if a space or a letter of a script without
    spaces follows.
    """
    for match in _FINAL_RUN.finditer(classes):
        if match["gap"] or "C" in match[0] or classes[match.end() : match.end() + 1] == "c":
            yield match.span("gap")


def _class_of(character: str) -> str:
    """Return the class of a character.

    Returns:
        s space   j joiner   f other character without width   m mark   v stacker
        c, C, Q of a script without spaces: letter or opening mark; mark that ends a sentence; other
        w letter or digit   e mark that ends a sentence   q closing mark   r half a flag   o other
    """
    category = unicodedata.category(character)
    if character.isspace() or character == _ZERO_WIDTH_SPACE:
        return "s"
    if category == "Cf":
        return "j" if character == _ZERO_WIDTH_JOINER else "f"
    if category[0] == "M" or character in _OTHER_MARKS:
        return "v" if character in _STACKERS else "m"
    if character == _WIDE_POINT:  # also of decimal numbers
        return "e"
    if character in _WIDE_FINAL:
        return "C"
    if _SPACELESS.match(character):
        return "Q" if category in ("Po", "Pe", "Pf", "Pd") else "c"
    if character.isalnum() or character == "_":
        return "w"
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return "r"
    if character in _FINAL:
        return "e"
    return "q" if category in ("Pe", "Pf") or character in "\"'" else "o"
