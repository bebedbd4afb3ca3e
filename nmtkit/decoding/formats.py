"""What `nmtkit translate` reads and writes: plain lines, Moses n-best lists, JSON lines."""

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

_TEXT_KEYS = ("source", "target_prefix")

_MAX_DIGITS = 1000
"""Of an integer: Python reads longer ones in quadratic time, and from some length on not at all."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half of a character, which JSON can escape (RFC 8259, section 8.2) and UTF-8 cannot hold."""


def read_requests(lines: Iterable[str], output: OutputConfig, name: str) -> Iterator[Request]:
    """Turn lines into requests.

    Args:
        lines: of input.
        output: their format.
        name: what messages call the input.

    Raises:
        DataError: a line is not the object that it should be.
    """
    return INPUT_FORMATS[output.input_format](lines, name)


def make_writer(output: OutputConfig) -> Callable[[Answer, int], list[str]]:
    """Return the function from an answer, and its line's number from 0, to lines of output."""
    return partial(OUTPUT_FORMATS[output.output_format], output)


def read_object(line: str, texts: tuple[str, str], where: str) -> dict[str, Any]:
    """Read a line of JSON.

    Args:
        line: an object.
        texts: the keys of a text that it has, and of one that it may have; null is none.
        where: what messages call the line.

    Raises:
        DataError: the line is no such object, or holds what could not be written again.
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
        raise DataError(f"{where}: not JSON to read ({error}); write an object a line") from None
    if not isinstance(values, dict) or not isinstance(values.get(needed), str):
        raise DataError(f'{where}: not an object with a text as "{needed}"; add it')
    if values.get(optional, "") is None:
        del values[optional]
    if not isinstance(values.get(optional, ""), str):
        raise DataError(f'{where}: "{optional}" is not a text; mend it, or leave it out')
    for key in texts:
        if half := _SURROGATE.search(values.get(key, "")):
            raise DataError(
                f'{where}: "{key}" holds half a character ({_escaped(half)}); write both of its '
                "halves, or the character"
            )
    return values


def _text_requests(lines: Iterable[str], _name: str) -> Iterator[Request]:
    return map(Request, lines)


def _json_requests(lines: Iterable[str], name: str) -> Iterator[Request]:
    for number, line in enumerate(lines, 1):
        yield _request(line, f"{name}, line {number}")


def _request(line: str, where: str) -> Request:
    values = read_object(line, _TEXT_KEYS, where)
    texts = {key: values.pop(key, "") for key in _TEXT_KEYS}
    return Request(**texts, others=values)


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs, none of which may be lost."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {json.dumps(key)} stands twice in an object")
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
    translation, behind = answer.translations[0], []
    if output.scores:
        behind.append(f"{translation.score:.6f}")
    if output.alignments:
        behind.append(pharaoh(translation.details.alignment))
    text = translation.text.replace("\t", " ") if behind else translation.text
    return ["\t".join([text, *behind])]


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
        columns.append(pharaoh(translation.details.alignment))
    return " ||| ".join(columns)


def _json_lines(output: OutputConfig, answer: Answer, _number: int) -> list[str]:
    """Write an object as UTF-8 can hold it; escaped halves of characters stay escaped."""
    return [_SURROGATE.sub(_escaped, json.dumps(_object(answer, output), ensure_ascii=False))]


def _object(answer: Answer, output: OutputConfig) -> dict[str, Any]:
    """Return what was asked, and the best translation; with --n-best, all of them as a list.

    The keys of an answer are its own, whatever came under these names.
    """
    request = answer.request
    best = _values(answer.translations[0], output)
    asked = {"source": request.source}
    if request.target_prefix:
        asked["target_prefix"] = request.target_prefix
    values = {**request.others, **asked, **best}
    if output.n_best > 1:
        values["n_best"] = [_values(one, output) for one in answer.translations]
    return values


def _values(translation: Translation, output: OutputConfig) -> dict[str, Any]:
    details = translation.details
    values: dict[str, Any] = {
        "translation": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
    }
    if output.token_scores:
        values["tokens"] = details.tokens
        values["token_log_probs"] = details.token_log_probs
    if output.alignments:
        values["alignment"] = pharaoh(translation.details.alignment)
    if output.attention:
        values["source_tokens"] = details.source_tokens
        values["tokens"] = details.tokens
        values["attention"] = [row.tolist() for row in details.attention]
    return values


INPUT_FORMATS: dict[str, Callable[[Iterable[str], str], Iterator[Request]]] = {
    "text": _text_requests,
    "json": _json_requests,
}
"""Functions from lines, and the name of the input for messages, to requests."""

OUTPUT_FORMATS: dict[str, Callable[[OutputConfig, Answer, int], list[str]]] = {
    "text": _text_lines,
    "moses": _moses_lines,
    "json": _json_lines,
}
"""Functions from the settings, an answer and its line's number from 0, to lines of output.

`OUTPUT_FORMATS` in nmtkit/config/schema.py has their facts.
"""
