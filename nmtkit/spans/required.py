"""What a translation must have: found in a line, and in its translations.

Placeholders, and elements of markup whose content is kept, must be there as often as in the line,
terms at least as often. A request in JSON may name further ones: `spans` and `terms`.
"""

import re
import unicodedata
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nmtkit.config.translation import ConstraintsConfig
from nmtkit.decoding.answers import Request
from nmtkit.errors import DataError
from nmtkit.spans.edges import Span
from nmtkit.spans.glossary import Glossary, Term, target_finder, without_overlaps
from nmtkit.spans.markup import MarkedLine
from nmtkit.spans.placeholders import compile_patterns, find_placeholders
from nmtkit.storage.json_data import JsonError, decode
from nmtkit.text.json_lines import check_text
from nmtkit.text.words import SPACELESS_CHARACTERS, word_and_punctuation_spans

AFTER_WORDS = rf"[\s{SPACELESS_CHARACTERS},.;!?)\]\"\u00bb\u201d\u2026\u060c\u061b\u061f\u0964]"
BEFORE_WORDS = rf"[\s{SPACELESS_CHARACTERS}(\[\"\u00ab\u201e\u201c\u00bf\u00a1]"
"""Expressions of the characters that may follow, and precede, a placeholder."""

_SPACELESS = re.compile(f"[{SPACELESS_CHARACTERS}]")
_AFTER_WORDS, _BEFORE_WORDS = re.compile(AFTER_WORDS), re.compile(BEFORE_WORDS)
_NUMBER_BEFORE, _NUMBER_AFTER = re.compile(r"\d[.,:]$"), re.compile(r"[.,:]\d")


def is_word_character(character: str) -> bool:
    """Return whether a character, or "", is of a word that spaces separate; vowel signs are."""
    if not character or _SPACELESS.match(character):
        return False
    is_sign = unicodedata.category(character) in ("Mn", "Mc")
    return is_sign or character.isalnum() or character == "_"


@dataclass(frozen=True)
class Required:
    """A part of a line that its translation must have.

    Attributes:
        kind: "placeholder", "element" (markup whose content is kept) or "term".
        start, end: its characters in the plain text.
        texts: the alternatives, as the target vocabulary writes them.
        raw: what the translation has instead; None = the alternative that the search wrote.
        is_glued: whether other text touches it before, and after it.
    """

    kind: str
    start: int
    end: int
    texts: tuple[str, ...]
    raw: str | None
    is_glued: tuple[bool, bool] = (False, False)

    @property
    def is_exact(self) -> bool:
        """Whether it must not be more often in the translation than in the source."""
        return self.raw is not None


@dataclass(frozen=True)
class Found:
    """Where a translation has what is required.

    Attributes:
        places: of each of the required parts; None = nowhere.
        is_met: nothing is missing, and nothing is there more often than it may be.
    """

    places: tuple[Span | None, ...]
    is_met: bool


class Finder:
    """Finds what is required."""

    def __init__(self, config: ConstraintsConfig, normalize: Callable[[str], str]) -> None:
        """Read the glossary, if there is one.

        Args:
            config: what is required.
            normalize: returns a text as translations have it.

        Raises:
            ConfigError: a pattern is not valid, or the glossary cannot be opened.
            DataError: the glossary is malformed.
        """
        self._config = config
        self._normalize = normalize
        self._kinds = config.placeholder_kinds
        self._patterns = compile_patterns(config.placeholder_pattern)
        self._find_targets = target_finder(is_case_sensitive=True)
        self._glossary = None
        if config.glossary:
            path, is_case_sensitive = Path(config.glossary), config.glossary_case
            self._glossary = Glossary.read(path, is_case_sensitive=is_case_sensitive)

    def in_line(self, marked: MarkedLine, request: Request, where: str) -> list[Required]:
        """Return what a translation must have, in order and without overlaps.

        Args:
            marked: the plain text of the line, and its markup.
            request: its keys `spans` and `terms` name further parts.
            where: name of the line in messages.

        Raises:
            DataError: a key is malformed.
        """
        text, normalize = marked.text, self._normalize
        spans = _given_spans(request, marked, where)
        elements = [Required("element", one.start, one.end, (), one.kept) for one in marked.kept]
        taken = sorted([*((one.start, one.end) for one in elements), *spans])
        placeholders = [
            span
            for span in find_placeholders(text, self._kinds, self._patterns)
            if not _overlaps(span, taken)
        ]
        placeholders = sorted([*spans, *placeholders])
        exact = [*elements]
        exact += [Required("placeholder", *span, (), text[slice(*span)]) for span in placeholders]
        exact = [
            replace(
                one,
                texts=(normalize(text[one.start : one.end]),),
                is_glued=_is_glued(text, one.start, one.end),
            )
            for one in exact
        ]
        taken = sorted((one.start, one.end) for one in exact)
        terms = without_overlaps(_given_terms(request, self._config, where, text), taken)
        if self._glossary is not None:
            taken = sorted([*taken, *((one.start, one.end) for one in terms)])
            terms = [*terms, *without_overlaps(self._glossary.find(text), taken)]
        required = [
            Required("term", one.start, one.end, tuple(map(normalize, one.targets)), None)
            for one in terms
        ]
        return sorted([*exact, *required], key=lambda one: one.start)

    def in_translation(self, required: Sequence[Required], text: str) -> Found:
        """Find what is required in a translation; longer texts first, so that none is in another.

        Args:
            required: parts of a line, in order.
            text: the translation.
        """
        groups: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
        for index, one in enumerate(required):
            groups.setdefault((not one.is_exact, one.texts), []).append(index)
        places: list[Span | None] = [None] * len(required)
        claimed: list[Span] = []
        is_met = True
        ordered = sorted(groups.items(), key=lambda group: (group[0][0], -len(group[0][1][0])))
        for (is_term, texts), indices in ordered:
            if is_term:
                # A sentence may begin with a term.
                forms = (*texts, *(one[:1].upper() + one[1:] for one in texts))
                found = [(one.start, one.end) for one in self._find_targets(forms, text)]
            else:
                glued = zip(*(required[index].is_glued for index in indices), strict=True)
                found = list(_occurrences(text, texts[0], *map(any, glued)))
            spans = [span for span in found if not _overlaps(span, claimed)]
            for index, span in zip(indices, spans, strict=False):
                places[index] = span
            for span in spans[: len(indices)]:
                insort(claimed, span)
            is_met &= len(spans) == len(indices) or (is_term and len(spans) > len(indices))
        return Found(tuple(places), is_met)


def _given_spans(request: Request, marked: MarkedLine, where: str) -> list[Span]:
    """Return the parts that the key `spans` of a request names, in order."""
    if "spans" not in request.others:
        return []
    if marked.is_escaped:
        raise DataError(
            f"{where}: spans count the characters of plain text; leave out --markup, or write an "
            'element with translate="no"'
        )
    try:
        found = sorted(decode(list[tuple[int, ...]], request.others["spans"]))
    except JsonError as error:
        raise DataError(f'{where}: "spans" is {error}; {_SPANS_FORM}') from None
    end = 0
    for span in found:
        if len(span) != 2 or not end <= span[0] < span[1] <= len(marked.text):
            raise DataError(f'{where}: "spans" has {list(span)}; {_SPANS_FORM}')
        end = span[1]
    return [(start, stop) for start, stop in found]


_SPANS_FORM = (
    "give a list of [start, end], characters of the source from 0, not empty and without overlaps, "
    "or rename a key of your own"
)
_TERMS_FORM = (
    'give an object of source terms with lists of target terms, such as {"Maus": ["mouse"]}, or '
    "rename a key of your own"
)


def _given_terms(request: Request, config: ConstraintsConfig, where: str, text: str) -> list[Term]:
    """Return the terms of a text that the key `terms` of its request names."""
    if "terms" not in request.others:
        return []
    try:
        given: Mapping[str, Any] = decode(dict[str, list[str]], request.others["terms"])
    except JsonError as error:
        raise DataError(f'{where}: "terms" is {error}; {_TERMS_FORM}') from None
    entries = list(given.items())
    for source, targets in entries:
        for one in (source, *targets):
            check_text(one, "terms", where)
        if not (targets and all(map(word_and_punctuation_spans, (source, *targets)))):
            raise DataError(f'{where}: "terms" has an empty term; {_TERMS_FORM}')
    return Glossary(entries, is_case_sensitive=config.glossary_case).find(text)


def _occurrences(text: str, wanted: str, *is_glued: bool) -> Iterator[Span]:
    """Yield where a placeholder is in a text, and not a part of something longer.

    Args:
        text: the text.
        wanted: the placeholder.
        is_glued: whether marks may touch it before, and after it.
    """
    # Spaces alone are nothing in a translation.
    start = text.find(wanted) if wanted else -1
    while start >= 0:
        end = start + len(wanted)
        if _is_apart(text, start, end, is_glued):
            yield start, end
        start = text.find(wanted, end)


def _is_apart(text: str, start: int, end: int, is_glued: tuple[bool, ...]) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    first, last = text[start], text[end - 1]
    if is_glued[0]:
        is_apart = not (is_word_character(before) and is_word_character(first))
    else:
        is_apart = not before or bool(_BEFORE_WORDS.match(before))
    if is_glued[1]:
        is_apart &= not (is_word_character(after) and is_word_character(last))
    else:
        is_apart &= not after or bool(_AFTER_WORDS.match(after))
    number_before = first.isdigit() and _NUMBER_BEFORE.match(text[max(0, start - 2) : start])
    number_after = last.isdigit() and _NUMBER_AFTER.match(text[end : end + 2])
    return is_apart and not (number_before or number_after)


def _is_glued(text: str, start: int, end: int) -> tuple[bool, bool]:
    """Return whether text touches a part of a line before, and after it."""
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return (
        bool(before and not _BEFORE_WORDS.match(before)),
        bool(after and not _AFTER_WORDS.match(after)),
    )


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    """Return whether a part shares a character with others, in order and without overlaps."""
    place = bisect_left(others, (span[1],))
    return place > 0 and others[place - 1][1] > span[0]
