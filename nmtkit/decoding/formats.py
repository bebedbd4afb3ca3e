"""What `nmtkit translate` reads and writes: plain lines, Moses n-best lists, JSON lines."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nmtkit.config.schema import OutputConfig
from nmtkit.decoding.alignment import pharaoh
from nmtkit.decoding.translation import Answer, Request, Translation
from nmtkit.errors import DataError

_TEXT_KEYS = ("source", "target_prefix")


def read_requests(lines: Iterable[str], output: OutputConfig, name: str) -> Iterator[Request]:
    """Turn lines into requests.

    Args:
        lines: of input.
        output: their format: text, or json, an object a line.
        name: what messages call the input.

    Raises:
        DataError: a line is not the object that it should be.
    """
    if output.input_format == "text":
        yield from map(Request, lines)
        return
    for number, line in enumerate(lines, 1):
        yield _request(line, f"{name}, line {number}")


def _request(line: str, where: str) -> Request:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); write an object a line") from None
    if not isinstance(values, dict) or not isinstance(values.get("source"), str):
        raise DataError(f'{where}: not an object with a text as "source"; add it')
    if not isinstance(values.get("target_prefix", ""), str):
        raise DataError(f'{where}: "target_prefix" is not a text; mend it, or leave it out')
    texts = {key: _one_line(values.pop(key, "")) for key in _TEXT_KEYS}
    return Request(**texts, others=values)


def _one_line(text: str) -> str:
    return text.replace("\n", " ")


def make_writer(output: OutputConfig) -> Callable[[Answer, int], list[str]]:
    """Return what turns an answer, and its line's number from 0, into lines of output."""
    if output.output_format == "json":
        return lambda answer, _: [json.dumps(_object(answer, output), ensure_ascii=False)]
    if output.output_format == "moses":
        return lambda answer, number: [
            _moses_line(one, number, output) for one in answer.translations
        ]
    return lambda answer, _: [_text_line(answer.translations[0], output)]


def _text_line(translation: Translation, output: OutputConfig) -> str:
    columns = [translation.text]
    if output.scores:
        columns.append(f"{translation.score:.6f}")
    if output.alignments:
        columns.append(pharaoh(translation.details.alignment))
    return "\t".join(columns)


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


def _object(answer: Answer, output: OutputConfig) -> dict[str, Any]:
    """Return what was asked, and the best translation; with --n-best, all of them as a list."""
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
        values["attention"] = details.attention
    return values
