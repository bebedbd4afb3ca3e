"""Requests to a translator, and the formats that they are read from: plain lines, JSON lines."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from nmtkit.text.json_lines import MAX_OBJECT_BYTES, read_object
from nmtkit.text.lines import MAX_LINE_BYTES, decode_lines
from nmtkit.text.translations import ANSWER_KEYS, REQUEST_KEYS, check_schema


@dataclass(frozen=True)
class Request:
    """A line to translate.

    Attributes:
        source: the text.
        target_prefix: the forced prefix of its translations; "" = none.
        others: the other keys of a JSON line, which are passed through to the output; those of an
            earlier answer are not among them.
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
    lines = decode_lines(stream, name, warn, found.max_bytes, first_line)
    numbered = enumerate(lines, first_line)
    return (found.request(line, f"{name}:{number}") for number, line in numbered)


def _text_request(line: str, _where: str) -> Request:
    return Request(line)


def _json_request(line: str, where: str) -> Request:
    values = read_object(line, REQUEST_KEYS, where)
    check_schema(values, where)
    texts = {key: values.pop(key, "") for key in REQUEST_KEYS}
    others = {key: value for key, value in values.items() if key not in ANSWER_KEYS}
    return Request(**texts, others=others)


INPUT_FORMATS: dict[str, InputFormat] = {
    "text": InputFormat(_text_request, can_be_malformed=False),
    "json": InputFormat(_json_request, can_be_malformed=True, max_bytes=MAX_OBJECT_BYTES),
}
"""The formats of the input of translation."""
