"""The schema `nmtkit-translations`: translations as JSON lines, which commands write and read.

docs/formats.md describes it. An object without the key `schema` is of version 1 too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from nmtkit.errors import DataError
from nmtkit.storage.json_data import JsonError, decode
from nmtkit.text.json_lines import MAX_OBJECT_BYTES, check_text, read_object
from nmtkit.text.lines import decode_lines

FORMAT, VERSION = "nmtkit-translations", 1
SCHEMA = f"{FORMAT}/{VERSION}"
"""The value of the key `schema`."""

SPAN_KEYS = frozenset({"spans", "terms"})
"""Keys of a JSON line that name further parts."""

REQUEST_KEYS = ("source", "target_prefix")
"""The keys of a request: a required text, and one that may be left out."""

TEXT_KEYS = (*REQUEST_KEYS, "target_lang")
"""Keys of a line whose values are texts."""


TRANSLATION_KEYS: dict[str, Any] = {
    "translation": str,
    "score": float,
    "log_prob": float,
    "quality": float,
    "quality_error": float,
    "perplexity": float,
    "tokens": list[str],
    "token_log_probs": list[float],
    "alignment": str,
    "link_probabilities": list[float],
    "source_tokens": list[str],
    "attention": list[list[float]],
    "placed": list[dict[str, Any]],
    "features": dict[str, float],
    "rerank_score": float,
    "system": str,
}
"""The keys of a translation, with the types of their values; only `translation` is required."""

ANSWER_KEYS = frozenset({"schema", "n_best", *TRANSLATION_KEYS})
"""The keys that answer a request; they are not passed through from an earlier answer."""


@dataclass(frozen=True)
class Candidate:
    """A translation of a line.

    Attributes:
        text: the translation.
        values: all its keys, `translation` too, as they were read.
        where: name of its line in messages.
        place: where its keys are in the line, such as `n_best[1].`; "" = the line itself.
    """

    text: str
    values: Mapping[str, Any]
    where: str = field(compare=False)
    place: str = field(compare=False)

    def named(self, key: str) -> str:
        """Return the name of a key in messages."""
        return f'{self.where}: "{self.place}{key}"'


@dataclass(frozen=True)
class TranslatedLine:
    """A line of the schema.

    Attributes:
        where: name of the line in messages: its file and number.
        source: the source text.
        target_prefix: the forced prefix of the translations; "" = none.
        best: the translation of the line itself.
        n_best: its list of translations; empty without the key `n_best`.
        others: the keys that the schema does not have.
    """

    where: str
    source: str
    target_prefix: str
    best: Candidate
    n_best: Sequence[Candidate]
    others: Mapping[str, Any]

    @property
    def target_lang(self) -> str:
        """The language of the translations, one of the other keys; "" = not given."""
        return str(self.others.get("target_lang", ""))

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The translations to choose from: `n_best`, or the only one."""
        return self.n_best or (self.best,)


def read_translations(stream: BinaryIO, name: str) -> Iterator[TranslatedLine]:
    """Return the lines of a stream of translations, read as needed.

    Args:
        stream: bytes, read line by line.
        name: name of the stream in messages.

    Raises:
        DataError: a line is not of the schema, or of a later version; invalid UTF-8; a line that is
            too long; a damaged gzip file.
    """
    lines = decode_lines(stream, name, max_bytes=MAX_OBJECT_BYTES)
    return (read_translation(line, f"{name}:{number}") for number, line in enumerate(lines, 1))


def plain_line(source: str, translation: str) -> TranslatedLine:
    """Return a line of the schema with a translation only."""
    best = Candidate(translation, {"translation": translation}, "", "")
    return TranslatedLine("", source, "", best, (), {})


def read_translation(line: str, where: str) -> TranslatedLine:
    """Read a line of the schema.

    Args:
        line: the line.
        where: its name, for messages.

    Raises:
        DataError: see `read_translations`.
    """
    values = read_object(line, TEXT_KEYS, where)
    check_schema(values, where)
    best = _candidate(values, where, "")
    n_best = values.get("n_best")
    is_list = isinstance(n_best, list) and n_best and all(isinstance(one, dict) for one in n_best)
    if n_best is not None and not is_list:
        raise DataError(
            f'{where}: "n_best" is not a list of at least one object; fix it, or leave it out'
        )
    return TranslatedLine(
        where=where,
        source=values["source"],
        target_prefix=values.get("target_prefix", ""),
        best=best,
        n_best=[
            _candidate(one, where, f"n_best[{place}].") for place, one in enumerate(n_best or [])
        ],
        others={
            key: value
            for key, value in values.items()
            if key not in ANSWER_KEYS and key not in REQUEST_KEYS
        },
    )


def check_schema(values: Mapping[str, Any], where: str) -> None:
    """Raise DataError if an object names another schema than this one, or a later version."""
    schema = values.get("schema", SCHEMA)
    if schema == SCHEMA:
        return
    match = isinstance(schema, str) and re.fullmatch(rf"{FORMAT}/([1-9][0-9]{{0,8}})", schema)
    if match:
        raise DataError(
            f'{where}: "schema" is {schema}, and this nmtkit reads up to version {VERSION}; '
            "update nmtkit"
        )
    raise DataError(
        f'{where}: "schema" is not {SCHEMA}, so its keys may mean something else; convert the '
        "object, or leave the key out"
    )


def _candidate(values: Mapping[str, Any], where: str, place: str) -> Candidate:
    """Return a translation; `place` is where its keys are in the line."""
    # In a list, an object's other keys are its own; those of the line are the request's.
    is_own = (
        (lambda key: key not in ("schema", "n_best")) if place else TRANSLATION_KEYS.__contains__
    )
    found = {key: value for key, value in values.items() if is_own(key)}
    candidate = Candidate(found.get("translation", ""), found, where, place)
    if "translation" not in found:
        raise DataError(f"{candidate.named('translation')} is missing; add the text")
    for key in [key for key in TRANSLATION_KEYS if key in found]:
        try:
            decode(TRANSLATION_KEYS[key], found[key])
        except JsonError as error:
            raise DataError(f"{where}: {error.inside(f'{place}{key}')}; fix it") from None
    check_text(candidate.text, f"{place}translation", where)
    return candidate
