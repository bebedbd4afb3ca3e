"""Requests to a translator, and the formats that they are read from: plain lines, JSON lines."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from nmtkit.errors import DataError
from nmtkit.text.lines import MAX_LINE_BYTES, decode_lines

_TEXT_KEYS = ("source", "target_prefix")

_MAX_DIGITS = 1000
"""Longest integer that is read: Python needs quadratic time for more digits, or refuses them."""

SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a character: JSON can escape it (RFC 8259, section 8.2), UTF-8 cannot encode it."""


@dataclass(frozen=True)
class Request:
    """A line to translate.

    Attributes:
        source: the text.
        target_prefix: the forced prefix of its translations; "" = none.
        others: the other keys of a JSON line, which are passed through to the output.
    """

    source: str
    target_prefix: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InputFormat:
    """A format of lines.

    Attributes:
        request: returns the request of a line, given the line's name for messages too.
        can_be_malformed: some lines are not of the format.
        max_bytes: longest line.
    """

    request: Callable[[str, str], Request]
    can_be_malformed: bool
    max_bytes: int = MAX_LINE_BYTES


def read_requests(
    stream: BinaryIO,
    input_format: str,
    name: str,
    warn: Callable[[str], None],
    first_line: int = 1,
) -> Iterator[Request]:
    """Return the requests of a stream, read as needed.

    Args:
        stream: bytes, read line by line.
        input_format: a key of `INPUT_FORMATS`.
        name: name of the stream in messages.
        warn: takes one-line warnings, of invalid UTF-8.
        first_line: number of the first line to return, from 1.

    Raises:
        DataError: a line is too long, or is not of the format; a damaged gzip file.
    """
    found = INPUT_FORMATS[input_format]
    lines = decode_lines(stream, name, "replace", warn, found.max_bytes, first_line)
    numbered = enumerate(lines, first_line)
    return (found.request(line, f"{name}:{number}") for number, line in numbered)


def read_object(line: str, texts: tuple[str, str], where: str) -> dict[str, Any]:
    """Read a JSON object from a line.

    Args:
        line: the line.
        texts: the key of a required text, and that of an optional one, which may be null.
        where: name of the line, for messages.

    Raises:
        DataError: the line is no such object, or holds a value that cannot be written again.
    """
    needed, optional = texts
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
    if values.get(optional, "") is None:
        del values[optional]
    if not isinstance(values.get(optional, ""), str):
        raise DataError(f'{where}: "{optional}" is not a text; fix it, or leave it out')
    for key in texts:
        if len(values.get(key, "")) > MAX_LINE_BYTES:
            raise DataError(
                f'{where}: "{key}" has more than {MAX_LINE_BYTES:,} characters; break it into '
                "several lines"
            )
        if half := SURROGATE.search(values.get(key, "")):
            raise DataError(
                f'{where}: "{key}" holds half a character ({escaped(half)}); write both of its '
                "halves, or the character"
            )
    return values


def escaped(half: re.Match[str]) -> str:
    """Return the escape sequence of half a character, as JSON writes it."""
    return f"\\u{ord(half[0]):04x}"


def _text_request(line: str, _where: str) -> Request:
    return Request(line)


def _json_request(line: str, where: str) -> Request:
    values = read_object(line, _TEXT_KEYS, where)
    texts = {key: values.pop(key, "") for key in _TEXT_KEYS}
    return Request(**texts, others=values)


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs; ValueError for a repeated key."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {json.dumps(key)} is twice in an object")
        values[key] = value
    return values


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits; at most {_MAX_DIGITS} are read")
    return int(digits)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a finite number")
    return value


INPUT_FORMATS: dict[str, InputFormat] = {
    "text": InputFormat(_text_request, can_be_malformed=False),
    # An object may hold the attention of a line of 1024 tokens, at 20 bytes per weight.
    "json": InputFormat(_json_request, can_be_malformed=True, max_bytes=2**25),
}
"""The formats of the input of translation."""
