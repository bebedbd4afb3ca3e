"""What a line of raw text should not have: entities, marks of segmentation, wrong characters."""

import html
import re
from html.entities import html5

from nmtkit.text.lines import one_line

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

# UTF-8 read as Latin-1 or Windows-1252 shows a lead byte, then continuation bytes as these.
_LETTERS = "\u00a1-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc"
_SIGNS = "\u00a0\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122"
_ANY = f"[{_LETTERS}{_SIGNS}\u0080-\u009f]"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_C1_CONTROL = re.compile("[\u0080-\u0084\u0086-\u009f]")  # without the line end
_CANDIDATE = re.compile(f"[\u00c2-\u00e9]{_ANY}")  # quick
_MOJIBAKE = re.compile(
    f"[\u00c2\u00c3]{_ANY}"  # Western European letters
    # Central European letters; quotation marks follow these two letters in Swedish and German.
    f"|[\u00c4\u00c5](?![\u00ab\u00bb])[{_LETTERS}]"
    f"|(?:[\u00d0\u00d1]{_ANY}){{2}}"  # Cyrillic
    f"|\u00e2\u20ac{_ANY}|\u00e3[\u0081\u201a\u0192]{_ANY}"  # punctuation, kana
    f"|(?:[\u00e4-\u00e9]{_ANY}{{2}}){{2}}"  # Chinese; single ones are French, before a space
)

_OTHERS = ("cp1250", "cp1251", "cp437", "cp850", "mac_roman", "gbk")
_RUN = re.compile("[^\x00-\x7f]+")
_LIKELY = re.compile("[\u00c0-\u017f\u2010-\u203a]+")
_QUOTES = "\u00ab\u00bb\u201c\u201d\u201e"
_MANY = 3  # characters, which correct text does not seem to be

SUBWORD_MARK = "@@"
"""What subword-nmt writes at the end of a subword within a word."""

_ANY_SUBWORD_MARK = re.compile("@@(?: |$)|\u2581")
_PUNCTUATION = "[.,\u3002\uff0c\u060c\u0964]"
_OF_WORD = r"[^\s!-/:-@\[-`{-~]"  # a letter, its mark or vowel sign: all but spaces, punctuation
_TOKENIZED = re.compile(rf"{_OF_WORD} {_PUNCTUATION}(?: |$)")
_PUNCTUATED = re.compile(rf"{_OF_WORD} ?{_PUNCTUATION}(?: |$)")


def unescape(line: str) -> str:
    """Return a line with HTML entities, such as `&amp;` or `&#39;`, as characters.

    An entity ends with a semicolon: `a?b&copy=c` stays, which a browser reads as `a?b\u00a9=c`.
    Line ends become spaces, and `&amp;lt;` becomes `&lt;`.
    """
    return _ENTITY.sub(_character, line) if "&" in line else line


def _character(entity: re.Match[str]) -> str:
    name = entity[0][1:]
    if not name.startswith("#"):
        return one_line(html5.get(name, entity[0]))
    return one_line(html.unescape(entity[0]))


def has_entity(line: str) -> bool:
    """Return whether a line has an HTML entity."""
    return unescape(line) != line


def has_mojibake(line: str) -> bool:
    """Return whether a line has UTF-8 that was read as another encoding, or a C1 control."""
    if line.isascii():
        return False
    if _C1_CONTROL.search(line) or (_CANDIDATE.search(line) and _MOJIBAKE.search(line)):
        return True
    return any(map(_is_misread, _RUN.finditer(line)))


def _is_misread(run: re.Match[str]) -> bool:
    """Return whether characters are UTF-8 in another encoding; few are only within a word."""
    neighbours = run.string[: run.start()][-1:] + run.string[run.end() :][:1]
    for encoding in _OTHERS:
        try:
            text = run[0].encode(encoding).decode()
        except UnicodeError:
            continue
        is_quoted = run[0].strip(_QUOTES) != run[0]
        is_in_word = any(map(str.isalpha, neighbours)) and not is_quoted
        if len(text) >= _MANY or (is_in_word and _LIKELY.fullmatch(text)):
            return True
    return False


def has_control(line: str) -> bool:
    """Return whether a line has a control character, other than a tab."""
    return bool(_CONTROL.search(line))


def has_lost_character(line: str) -> bool:
    """Return whether a line has U+FFFD, which conversions write for what they cannot read."""
    return "\ufffd" in line


def has_subword_mark(line: str) -> bool:
    """Return whether a line has the mark of subword-nmt, `@@`, or SentencePiece's U+2581."""
    return bool(_ANY_SUBWORD_MARK.search(line))


def join_subwords(line: str) -> str:
    """Return a line without the mark of subword-nmt and the space after it."""
    return line.replace(f"{SUBWORD_MARK} ", "").removesuffix(SUBWORD_MARK)


def has_punctuation(line: str) -> bool:
    """Return whether a line has a full stop or comma after a word, with or without a space."""
    return bool(_PUNCTUATED.search(line))


def is_tokenized(line: str) -> bool:
    """Return whether a line has a space between a word and a full stop or comma."""
    return bool(_TOKENIZED.search(line))
