"""Characters that a line of text should not have: HTML entities, and those of a wrong encoding."""

import html
import re
from html.entities import html5

from nmtkit.text.lines import one_line

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

# UTF-8 read as Latin-1 or Windows-1252 shows a lead byte, then continuation bytes as these.
_LETTERS = "\u00a1-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc"
_SIGNS = "\u00a0\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122"
_ANY = f"[{_LETTERS}{_SIGNS}\u0080-\u009f]"
_CONTROL = re.compile("[\u0080-\u0084\u0086-\u009f]")  # C1, without the line end
_CANDIDATE = re.compile(f"[\u00c2-\u00e9]{_ANY}")  # quick
_MOJIBAKE = re.compile(
    f"[\u00c2\u00c3]{_ANY}"  # Western European letters
    # Central European letters; quotation marks follow these two letters in Swedish and German.
    f"|[\u00c4\u00c5](?![\u00ab\u00bb])[{_LETTERS}]"
    f"|(?:[\u00d0\u00d1]{_ANY}){{2}}"  # Cyrillic
    f"|\u00e2\u20ac{_ANY}|\u00e3[\u0081\u201a\u0192]{_ANY}"  # punctuation, kana
    f"|(?:[\u00e4-\u00e9]{_ANY}{{2}}){{2}}"  # Chinese; single ones are French, before a space
)


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
    """Return whether a line has UTF-8 read as Latin-1 or Windows-1252, or a C1 control."""
    if line.isascii():
        return False
    return bool(_CONTROL.search(line) or (_CANDIDATE.search(line) and _MOJIBAKE.search(line)))


def has_lost_character(line: str) -> bool:
    """Return whether a line has U+FFFD, which conversions write for what they cannot read."""
    return "\ufffd" in line
