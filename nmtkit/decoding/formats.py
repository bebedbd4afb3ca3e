"""Formats of translation and alignment: requests are read from plain or JSON lines.

Answers are written as plain lines, Moses n-best lists or JSON lines.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, BinaryIO

from nmtkit.config.translation import LinksConfig, OutputConfig
from nmtkit.decoding.answers import AlignedPair, Answer, Pair, Request, Tally, Translation
from nmtkit.errors import DataError
from nmtkit.text.codec import KINDS
from nmtkit.text.json_lines import MAX_OBJECT_BYTES, read_object, write_object
from nmtkit.text.lines import MAX_LINE_BYTES, decode_lines
from nmtkit.text.translations import (
    ANSWER_KEYS,
    SCHEMA,
    TEXT_KEYS,
    check_schema,
    read_translations,
)


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
    values = read_object(line, TEXT_KEYS, where)
    check_schema(values, where)
    texts = {key: values.pop(key, "") for key in TEXT_KEYS}
    others = {key: value for key, value in values.items() if key not in ANSWER_KEYS}
    return Request(**texts, others=others)


INPUT_FORMATS: dict[str, InputFormat] = {
    "text": InputFormat(_text_request, can_be_malformed=False),
    "json": InputFormat(_json_request, can_be_malformed=True, max_bytes=MAX_OBJECT_BYTES),
}
"""The formats of the input of translation."""


def read_pairs(
    stream: BinaryIO, input_format: str, name: str, warn: Callable[[str], None]
) -> Iterator[Pair]:
    """Return the pairs of a stream, read as needed: two columns, or JSON lines with translations.

    Args:
        stream, input_format, name, warn: as for `read_requests`.

    Raises:
        DataError: a line is too long, or is not of the format; a damaged gzip file.
    """
    if input_format == "json":
        found = read_translations(stream, name)
        return (Pair(one.source, one.best.text, {**one.best.values, **one.others}) for one in found)
    numbered = enumerate(decode_lines(stream, name, warn), 1)
    return (_pair(line, f"{name}:{number}") for number, line in numbered)


def _pair(line: str, where: str) -> Pair:
    source, *targets = line.split("\t")
    if len(targets) != 1 and line.strip():
        raise DataError(
            f"{where}: {len(targets)} tabs; write a source, one tab and its translation"
        )
    return Pair(source, targets[0] if targets else "")


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


def summarize(tally: Tally, target_kind: str) -> str:
    """Return a line about what a text's translations lack or had repaired; "" = nothing.

    Args:
        tally: of the text.
        target_kind: of the target vocabulary, a key of `KINDS`.
    """
    return KINDS[target_kind].summarize(tally.repairs) or tally.summary


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of Moses' format with their numbers, until the first that is damaged."""
    for line in lines:
        number = line.partition(b" ")[0]
        if not number.isdigit() or len(number) > _MOST_DIGITS:
            return
        yield int(number), line


def _text_lines(output: OutputConfig, answer: Answer, _number: int) -> list[str]:
    translation, columns = answer.translation, []
    if output.scores:
        columns.append(f"{translation.score:.6f}")
    if output.quality:
        quality = translation.quality
        columns += [f"{quality.chrf:.2f}", f"{quality.error:.2f}"] if quality else ["", ""]
    if output.alignments:
        columns.append(pharaoh(translation.alignment))
    text = translation.text.replace("\t", " ") if columns else translation.text
    return ["\t".join([text, *columns])]


def _moses_lines(output: OutputConfig, answer: Answer, number: int) -> list[str]:
    return [_moses_line(one, number, output) for one in answer.translation.n_best]


def _moses_line(translation: Translation, number: int, output: OutputConfig) -> str:
    """Return number ||| text ||| features ||| score [||| alignment]."""
    features = f"LogProb= {translation.log_prob:.6f} Tokens= {len(translation.tokens)}"
    if quality := translation.quality:
        features += f" Quality= {quality.chrf:.2f} QualityError= {quality.error:.2f}"
    columns = [
        str(number),
        translation.text.replace("|||", "| | |"),
        features,
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
    if request.target_lang:
        given["target_lang"] = request.target_lang
    values = {**given, **request.others, **_values(answer.translation, output)}
    if output.n_best > 1:
        values["n_best"] = [_values(one, output) for one in answer.translation.n_best]
    return values


def _values(translation: Translation, output: OutputConfig) -> dict[str, Any]:
    values: dict[str, Any] = {
        "translation": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
    }
    if quality := translation.quality:
        values |= {"quality": quality.chrf, "quality_error": quality.error}
    if output.token_scores:
        values["tokens"] = translation.tokens
        values["token_log_probs"] = translation.token_log_probs
    if output.alignments:
        values["alignment"] = pharaoh(translation.alignment)
    if translation.placed:
        values["placed"] = [
            {"kind": one.kind, "source": one.source, "translation": one.target}
            for one in translation.placed
        ]
    if output.attention:
        values["source_tokens"] = translation.source_tokens
        values["tokens"] = translation.tokens
        values["attention"] = [row.tolist() for row in translation.attention]
    return values


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """Write links in Pharaoh format, `0-0 1-2`: source-target, from 0, in target order."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def make_links_writer(config: LinksConfig) -> Callable[[AlignedPair, int], list[str]]:
    """Return the function from an aligned pair, and its line's number, to the line of output."""

    def text_line(pair: AlignedPair, _number: int) -> list[str]:
        columns = [pharaoh(pair.links)]
        if config.probabilities:
            columns.append(" ".join(f"{one:.4f}" for one in pair.probabilities))
        return ["\t".join(columns)]

    def json_line(pair: AlignedPair, _number: int) -> list[str]:
        request = pair.request
        values = {
            "schema": SCHEMA,
            "source": request.source,
            "translation": request.target,
            **request.others,
            "alignment": pharaoh(pair.links),
        }
        if config.probabilities:
            values["link_probabilities"] = pair.probabilities
        return [write_object(values)]

    return text_line if config.output_format == "text" else json_line


OUTPUT_FORMATS: dict[str, Callable[[OutputConfig, Answer, int], list[str]]] = {
    "text": _text_lines,
    "moses": _moses_lines,
    "json": _json_lines,
}
"""Functions from the settings, an answer and its line's number from 0, to output lines.

`OUTPUT_FORMATS` in nmtkit/config/translation.py has their names.
"""
