"""Placeholders in a line of plain text: parts that a translation has byte for byte, each once.

`PLACEHOLDERS` is the table of their kinds; users add regular expressions. Of several matches, the
leftmost counts, and of those that begin at the same place the longest one. The search is linear in
the line, except for expressions of users.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from nmtkit.errors import ConfigError
from nmtkit.spans.edges import Span
from nmtkit.text.words import SPACELESS_CHARACTERS

Search = Callable[[int], Span | None]
"""Returns the first placeholder of a text that begins at a position or after it."""

_NAME = r"[\w.\-\[\]]++"
_SIMPLE = re.compile(
    # Conversions and alignments, too: {x:.2f}, {0!r}, {0,-10:N2}, {count, number}.
    rf"\{{\s*+(?:{_NAME}\s*+)?+"
    r"(?:,\s*+(?:-?\d++|(?:number|date|time|spellout|ordinal|duration)\b)\s*+(?:,[^{}]*+)?+)?+"
    r"(?:[:!][^\s{}]*+)?+\}"
)
_DOUBLE = re.compile(r"\{\{\{[^{}]++\}\}\}|\{\{[^{}]++\}\}")
_CHOICE = re.compile(rf"\{{\s*+{_NAME}\s*+,\s*+(?:plural|selectordinal|select|choice)\s*+,")
_BRACE = re.compile(r"[{}]")
_OPENING = re.compile(r"[$%]?\{")

_CONVERSION = (
    # Without the flag " " and the conversion a: "50 % die" and Basque "%20a" have percentages.
    r"%(?:\d++\$)?+(?:\(\w++\))?+[-+#0']*+(?:\d++|\*)?+(?:\.(?:\d++|\*)?+)?+"
    r"(?:hh?|ll?|[qLjzt])?+[diouxXeEfFgGcCsSpn@]"
)
_PRINTF = re.compile(
    # "100%ige" and "100 %ige" have a percentage, "item %d" and "page 1 %s" a conversion.
    rf"%%|(?<!\d)(?:(?<!\d[ \u00a0\u202f]){_CONVERSION}|{_CONVERSION}(?![^\W\d_]))"
)

_URL = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:https?|ftp)://|www\.)[^\W_{SPACELESS_CHARACTERS}]"
    rf"[^\s<>\"\u00ab\u00bb\u201c-\u201f{SPACELESS_CHARACTERS}]*+",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?*'\u2018\u2019\u2026\u060c\u061b\u061f\u0964"
_BRACKETS = {")": "(", "]": "[", "}": "{"}

_LETTER_OF_DOMAIN = rf"(?:(?![{SPACELESS_CHARACTERS}])[^\W_])"
_LABEL = rf"{_LETTER_OF_DOMAIN}++(?:-++{_LETTER_OF_DOMAIN}++)*+"
_EMAIL = re.compile(
    # An address begins where its characters begin, so that no character is read twice.
    rf"(?<![A-Za-z0-9._+-])[A-Za-z0-9._+-]++@{_LABEL}(?:\.{_LABEL})++"
)

_POINTS = ".,:'\u2019\u066b\u066c"
_GROUPS = r"\d{1,3}+(?:[\u00a0\u2009\u202f]\d{3}(?!\d))++(?:[.,\u066b]\d++)?+"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}(?!\d)|\d{1,4}/\d{1,2}/\d{1,4}(?!\d)"
_NO_LETTER = f"{SPACELESS_CHARACTERS}\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
"""Letters that stand next to numbers: of scripts without spaces, and Hangul."""
_NUMBER = re.compile(
    rf"(?<!\d)(?<!\d[{_POINTS}])(?:(?<=[{_NO_LETTER}])|(?<!\w))"
    rf"(?>{_GROUPS}|{_DATE}|\d++(?:[{_POINTS}]\d++)*+)(?:(?=[{_NO_LETTER}])|(?!\w))"
)


def find_placeholders(
    text: str, names: Sequence[str], patterns: Sequence[re.Pattern[str]]
) -> list[Span]:
    """Return where the placeholders of a text begin and end, in order and without overlaps.

    Args:
        text: a line.
        names: kinds of placeholders, keys of `PLACEHOLDERS`.
        patterns: further placeholders; an empty match is none.
    """
    searches = [PLACEHOLDERS[name](text) for name in names]
    searches += [partial(_search_pattern, pattern, text) for pattern in patterns]
    first = {search: found for search in searches if (found := search(0))}
    spans = []
    while first:
        start, negative_length = min((start, start - end) for start, end in first.values())
        position = start - negative_length
        spans.append((start, position))
        for search, (next_start, _) in list(first.items()):
            if next_start < position:
                found = search(position)
                if found is None:
                    del first[search]
                else:
                    first[search] = found
    return spans


def compile_patterns(patterns: Sequence[str]) -> list[re.Pattern[str]]:
    """Compile the regular expressions of --placeholder-pattern.

    Raises:
        ConfigError: one is not valid.
    """
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(
                f"--placeholder-pattern {pattern!r}: not a regular expression: {error}; write a "
                "special character that stands for itself with a backslash, such as '\\('"
            ) from error
    return compiled


def _search_pattern(pattern: re.Pattern[str], text: str, position: int) -> Span | None:
    while match := pattern.search(text, position):
        if match.end() > match.start():
            return match.span()
        if match.end() == len(text):
            return None
        position = match.end() + 1
    return None


def _by_pattern(pattern: re.Pattern[str]) -> Callable[[str], Search]:
    """Return a kind of placeholders that one regular expression finds."""
    return lambda text: partial(_search_pattern, pattern, text)


def _braces(text: str) -> Search:
    """Find names in braces, and whole ICU plurals and selects, whose braces are nested."""
    closing = _matching_braces(text)

    def search(position: int) -> Span | None:
        for match in _OPENING.finditer(text, position):
            brace = match.end() - 1
            if brace in closing and _CHOICE.match(text, brace):
                return match.start(), closing[brace] + 1
            if found := _DOUBLE.match(text, brace) or _SIMPLE.match(text, brace):
                return match.start(), found.end()
        return None

    return search


def _matching_braces(text: str) -> dict[int, int]:
    """Return the place of the closing brace of each opening brace that has one."""
    closing, unclosed = {}, []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            unclosed.append(match.start())
        elif unclosed:
            closing[unclosed.pop()] = match.start()
    return closing


def _urls(text: str) -> Search:
    """Find URLs, without punctuation and closing brackets that belong to the text around them."""

    def search(position: int) -> Span | None:
        match = _URL.search(text, position)
        return (match.start(), match.start() + len(_trimmed(match[0]))) if match else None

    return search


def _trimmed(url: str) -> str:
    """Return a URL without trailing punctuation, and closing brackets that it does not open."""
    unopened = {close: url.count(close) - url.count(open) for close, open in _BRACKETS.items()}
    end = len(url)
    for character in reversed(url):
        if unopened.get(character, 0) > 0:
            unopened[character] -= 1
        elif character not in _TRAILING:
            break
        end -= 1
    return url[:end]


PLACEHOLDERS: dict[str, Callable[[str], Search]] = {
    "braces": _braces,
    "printf": _by_pattern(_PRINTF),
    "url": _urls,
    "email": _by_pattern(_EMAIL),
    "number": _by_pattern(_NUMBER),
}
"""Kinds of placeholders: each makes a `Search` of a text.

braces: {name}, {0}, {}, {{name}}, ${name}, %{name}, {count, number}; {n, plural, one {...} ...}.
printf: %s, %1$s, %-5.2f, %lld, %(name)s, %@, %%.
url: of http, https and ftp, or from www. on.
email: addresses.
number: 1,234.5, 12:30, 2024-01-31, in any digits, without sign; not next to a letter, as in x86.
"""
