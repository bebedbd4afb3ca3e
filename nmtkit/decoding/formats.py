"""Input and output formats of `nmtkit translate`: plain lines, Moses n-best lists, JSON lines."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from nmtkit.config.schema import OutputConfig
from nmtkit.decoding.attention import pharaoh
from nmtkit.decoding.requests import Answer, Request, Translation
from nmtkit.errors import DataError
from nmtkit.text.lines import MAX_LINE_BYTES

_TEXT_KEYS = ("source", "target_prefix")

_MAX_DIGITS = 1000
"""Longest integer that is read: Python needs quadratic time for more digits, or refuses them."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a character: JSON can escape it (RFC 8259, section 8.2), UTF-8 cannot encode it."""


def read_requests(
    lines: Iterable[str], output: OutputConfig, name: str, first_line: int = 1
) -> Iterator[Request]:
    """Turn input lines into requests.

    Args:
        lines: input lines.
        output: settings with their format.
        name: name of the input, for messages.
        first_line: number of the first line, for messages.

    Raises:
        DataError: a line is not a JSON object of the format.
    """
    return INPUT_FORMATS[output.input_format](lines, name, first_line)


def make_writer(output: OutputConfig) -> Callable[[Answer, int], list[str]]:
    """Return the function from an answer, and its line's number from 0, to output lines."""
    return partial(OUTPUT_FORMATS[output.output_format], output)


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
        if half := _SURROGATE.search(values.get(key, "")):
            raise DataError(
                f'{where}: "{key}" holds half a character ({_escaped(half)}); write both of its '
                "halves, or the character"
            )
    return values


def _text_requests(lines: Iterable[str], _name: str, _first_line: int) -> Iterator[Request]:
    return map(Request, lines)


def _json_requests(lines: Iterable[str], name: str, first_line: int) -> Iterator[Request]:
    for number, line in enumerate(lines, first_line):
        yield _request(line, f"{name}, line {number}")


def _request(line: str, where: str) -> Request:
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


def _escaped(half: re.Match[str]) -> str:
    return f"\\u{ord(half[0]):04x}"


def _text_lines(output: OutputConfig, answer: Answer, _number: int) -> list[str]:
    translation, columns = answer.translations[0], []
    if output.scores:
        columns.append(f"{translation.score:.6f}")
    if output.alignments:
        columns.append(pharaoh(translation.annotations.alignment))
    text = translation.text.replace("\t", " ") if columns else translation.text
    return ["\t".join([text, *columns])]


def _moses_lines(output: OutputConfig, answer: Answer, number: int) -> list[str]:
    return [_moses_line(one, number, output) for one in answer.translations]


def _moses_line(translation: Translation, number: int, output: OutputConfig) -> str:
    """Return number ||| text ||| features ||| score [||| alignment]."""
    columns = [
        str(number),
        translation.text.replace("|||", "| | |"),
        f"LogProb= {translation.log_prob:.6f} Tokens= {translation.num_tokens}",
        f"{translation.score:.6f}",
    ]
    if output.alignments:
        columns.append(pharaoh(translation.annotations.alignment))
    return " ||| ".join(columns)


def _json_lines(output: OutputConfig, answer: Answer, _number: int) -> list[str]:
    """Write an object as UTF-8; escaped halves of characters stay escaped."""
    return [_SURROGATE.sub(_escaped, json.dumps(_object(answer, output), ensure_ascii=False))]


def _object(answer: Answer, output: OutputConfig) -> dict[str, Any]:
    """Return the request and its best translation; with --n-best, also the list of all.

    Keys of the answer replace other keys of the request with the same name.
    """
    request = answer.request
    best = _values(answer.translations[0], output)
    given = {"source": request.source}
    if request.target_prefix:
        given["target_prefix"] = request.target_prefix
    values = {**request.others, **given, **best}
    if output.n_best > 1:
        values["n_best"] = [_values(one, output) for one in answer.translations]
    return values


def _values(translation: Translation, output: OutputConfig) -> dict[str, Any]:
    annotations = translation.annotations
    values: dict[str, Any] = {
        "translation": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
    }
    if output.token_scores:
        values["tokens"] = annotations.tokens
        values["token_log_probs"] = annotations.token_log_probs
    if output.alignments:
        values["alignment"] = pharaoh(translation.annotations.alignment)
    if output.attention:
        values["source_tokens"] = annotations.source_tokens
        values["tokens"] = annotations.tokens
        values["attention"] = [row.tolist() for row in annotations.attention]
    return values


INPUT_FORMATS: dict[str, Callable[[Iterable[str], str, int], Iterator[Request]]] = {
    "text": _text_requests,
    "json": _json_requests,
}
"""Functions from lines, the name of the input, and the number of the first line, to requests.

`LINE_BYTES` in nmtkit/text/lines.py has the longest line of each.
"""

OUTPUT_FORMATS: dict[str, Callable[[OutputConfig, Answer, int], list[str]]] = {
    "text": _text_lines,
    "moses": _moses_lines,
    "json": _json_lines,
}
"""Functions from the settings, an answer and its line's number from 0, to output lines.

`OUTPUT_FORMATS` in nmtkit/config/schema.py has the settings of each.
"""
