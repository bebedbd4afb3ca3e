"""Output formats of `nmtkit translate`: plain lines, Moses n-best lists, JSON lines."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

from nmtkit.config.translation import OutputConfig
from nmtkit.decoding.answers import Answer, Translation
from nmtkit.decoding.attention import pharaoh
from nmtkit.text.json_lines import write_object
from nmtkit.text.translations import SCHEMA


def make_writer(output: OutputConfig) -> Callable[[Answer, int], list[str]]:
    """Return the function from an answer, and its line's number from 0, to output lines."""
    return partial(OUTPUT_FORMATS[output.output_format], output)


_MOST_DIGITS = 18
"""Digits of the largest number of a line."""


def answered(output: OutputConfig, lines: Iterable[bytes], first: int) -> Iterator[tuple[int, int]]:
    """Yield how far lines of output reach: the number of the next input line, and of bytes.

    A list in Moses' format is known to be complete if another one follows, or all `n_best` are
    there.

    Args:
        output: the settings of the output.
        lines: lines of output with their ends; the last list of Moses' format may be unfinished.
        first: number of the input line that they begin with, from 0.
    """
    is_moses = output.output_format == "moses"
    most, num_bytes = output.n_best if is_moses else 1, 0
    numbered = _numbered(lines) if is_moses else enumerate(lines, first)
    for number, answer in groupby(numbered, lambda pair: pair[0]):
        yield number, num_bytes
        sizes = [len(line) for _, line in answer]
        num_bytes += sum(sizes)
        if len(sizes) == most:
            yield number + 1, num_bytes


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of Moses' format with their numbers, until the first that is damaged."""
    for line in lines:
        number = line.partition(b" ")[0]
        if not number.isdigit() or len(number) > _MOST_DIGITS:
            return
        yield int(number), line


def _text_lines(output: OutputConfig, answer: Answer, _number: int) -> list[str]:
    translation, columns = answer.translations[0], []
    if output.scores:
        columns.append(f"{translation.score:.6f}")
    if output.alignments:
        columns.append(pharaoh(translation.alignment))
    text = translation.text.replace("\t", " ") if columns else translation.text
    return ["\t".join([text, *columns])]


def _moses_lines(output: OutputConfig, answer: Answer, number: int) -> list[str]:
    return [_moses_line(one, number, output) for one in answer.translations]


def _moses_line(translation: Translation, number: int, output: OutputConfig) -> str:
    """Return number ||| text ||| features ||| score [||| alignment]."""
    columns = [
        str(number),
        translation.text.replace("|||", "| | |"),
        f"LogProb= {translation.log_prob:.6f} Tokens= {len(translation.tokens)}",
        f"{translation.score:.6f}",
    ]
    if output.alignments:
        columns.append(pharaoh(translation.alignment))
    return " ||| ".join(columns)


def _json_lines(output: OutputConfig, answer: Answer, _number: int) -> list[str]:
    return [write_object(_object(answer, output))]


def _object(answer: Answer, output: OutputConfig) -> dict[str, Any]:
    """Return the request and its best translation; with --n-best, also the list of all.

    Keys of the answer replace other keys of the request with the same name.
    """
    request = answer.request
    given = {"schema": SCHEMA, "source": request.source}
    if request.target_prefix:
        given["target_prefix"] = request.target_prefix
    values = {**given, **request.others, **_values(answer.translations[0], output)}
    if output.n_best > 1:
        values["n_best"] = [_values(one, output) for one in answer.translations]
    return values


def _values(translation: Translation, output: OutputConfig) -> dict[str, Any]:
    values: dict[str, Any] = {
        "translation": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
    }
    if output.token_scores:
        values["tokens"] = translation.tokens
        values["token_log_probs"] = translation.token_log_probs
    if output.alignments:
        values["alignment"] = pharaoh(translation.alignment)
    if output.attention:
        values["source_tokens"] = translation.source_tokens
        values["tokens"] = translation.tokens
        values["attention"] = [row.tolist() for row in translation.attention]
    return values


OUTPUT_FORMATS: dict[str, Callable[[OutputConfig, Answer, int], list[str]]] = {
    "text": _text_lines,
    "moses": _moses_lines,
    "json": _json_lines,
}
"""Functions from the settings, an answer and its line's number from 0, to output lines.

`OUTPUT_FORMATS` in nmtkit/config/translation.py has the settings of each.
"""
