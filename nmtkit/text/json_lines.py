"""Objects of JSON lines: read so that each value can be written again, and written as UTF-8.

`nmtkit.text.translations` has the schema of translations.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from nmtkit.errors import DataError
from nmtkit.text.lines import MAX_LINE_BYTES

MAX_OBJECT_BYTES = 2**25
"""Longest line: it may hold the attention of a line of 1024 tokens, at 20 bytes per weight."""

_MAX_DIGITS = 1000
"""Longest integer that is read: Python needs quadratic time for more digits, or refuses them."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a character: JSON can escape it (RFC 8259, section 8.2), UTF-8 cannot encode it."""

_PLAIN = {float, int, str, bool, type(None)}
"""Types of values that have no others in them and are written as Python writes them."""


class _Number(float):
    """A number that Python would write in another way, such as 1.10, 1e5 or -0."""

    def __new__(cls, text: str) -> Self:
        """Return the number of a text, with the text."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def read_object(line: str, texts: Sequence[str], where: str) -> dict[str, Any]:
    """Read a JSON object from a line.

    Args:
        line: the line.
        texts: the key of a required text, and those of optional ones, which may be null.
        where: name of the line, for messages.

    Raises:
        DataError: the line is no such object, or holds a value that cannot be written again.
    """
    needed, *optional = texts
    try:
        values = json.loads(
            line,
            object_pairs_hook=_distinct,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: cannot be read as JSON ({error}); write one object per line"
        ) from None
    if not isinstance(values, dict) or not isinstance(values.get(needed), str):
        raise DataError(f'{where}: not an object with a text as "{needed}"; add it')
    for key in optional:
        if values.get(key, "") is None:
            del values[key]
        if not isinstance(values.get(key, ""), str):
            raise DataError(f'{where}: "{key}" is not a text; fix it, or leave it out')
    for key in texts:
        check_text(values.get(key, ""), key, where)
    return values


def check_text(text: str, key: str, where: str) -> None:
    """Raise DataError for a text that is too long, or holds half a character."""
    if len(text) > MAX_LINE_BYTES:
        raise DataError(
            f'{where}: "{key}" has more than {MAX_LINE_BYTES:,} characters; break it into '
            "several lines"
        )
    if half := _SURROGATE.search(text):
        raise DataError(
            f'{where}: "{key}" holds half a character ({_escaped(half)}); write both of its '
            "halves, or the character"
        )


def write_object(values: Mapping[str, Any]) -> str:
    """Return an object as one line of UTF-8; numbers and escaped halves of characters stay."""
    try:
        text = _json(values)
    except RecursionError:  # C reads what is too deep for Python
        text = _dumps(values)
    return _SURROGATE.sub(_escaped, text)


def _json(value: object) -> str:
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, Mapping):
        return "{" + ", ".join([f"{_dumps(key)}: {_json(one)}" for key, one in value.items()]) + "}"
    if isinstance(value, list) and not {*map(type, value)} <= _PLAIN:
        return "[" + ", ".join([_json(one) for one in value]) + "]"
    return _dumps(value)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _escaped(half: re.Match[str]) -> str:
    """Return the escape sequence of half a character, as JSON writes it."""
    return f"\\u{ord(half[0]):04x}"


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs; ValueError for a repeated key."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {json.dumps(key)} is twice in an object")
        values[key] = value
    return values


def _integer(digits: str) -> float:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits; at most {_MAX_DIGITS} are read")
    return int(digits) if digits != "-0" else _Number(digits)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a finite number")
    return value if repr(value) == number else _Number(number)
