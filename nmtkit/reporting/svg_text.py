"""Text in SVG: estimated width, XML escapes, and the colours of pictures on white."""

import re
from html import escape
from unicodedata import combining, east_asian_width

PAPER, INK, MUTED = "#ffffff", "#1c2024", "#5b646e"
"""The background of pictures, their text, and their captions."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Source: XML 1.0, section 2.2."""


def columns(text: str) -> int:
    """Estimate the width of a text in letters; the reader's font is unknown."""
    return sum(map(_width, text))


def xml_text(text: str) -> str:
    """Escape a text; a character that XML cannot hold becomes U+FFFD."""
    return escape(visible_text(text))


def visible_text(text: str) -> str:
    """Replace characters that XML cannot hold by U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
