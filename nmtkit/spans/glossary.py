r"""Glossaries: terms of the source language with the terms that must translate them.

A glossary is a UTF-8 file, plain or gzipped: per line a source term, a tab, and a target term or
alternatives separated by `|`. In a target term, `\|` is a bar and `\\` a backslash. Blank lines are
ignored, and lines that are `#` or begin with `#` and a space. Spaces around terms do not count.
Lines with the same source term add alternatives.

A term matches whole words: its words, as `nmtkit.text.words` separates words and punctuation, with
spaces at the same places. In scripts without spaces, each grapheme cluster is a word, so a term
matches anywhere. Words are compared in Unicode form NFKC without characters that have no width and,
unless case matters, without case. Inflected forms are other terms.
"""

import hashlib
import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nmtkit.errors import DataError
from nmtkit.text.lines import read_list
from nmtkit.text.words import word_and_punctuation_spans
from nmtkit.units import counted

_COMMENT = re.compile("#(?: |$)")
_FORM = "a line is a source term, a tab and a target term, or alternatives with '|' between them"
_TARGET_PART = re.compile(r"\\[|\\]|[|]|[^|\\]+|\\")
_HASH_DIGITS = 8
_NUM_PREPARED = 10_000


@dataclass(frozen=True)
class Term:
    """A term of a glossary in a text.

    Attributes:
        start, end: where it begins and ends, in characters of the text.
        targets: the alternatives that may translate it, at least one.
    """

    start: int
    end: int
    targets: tuple[str, ...]


class Glossary:
    """Source terms with their target terms; finds the source terms in texts."""

    def __init__(self, entries: Iterable[tuple[str, Sequence[str]]], *, is_case_sensitive: bool):
        """Store terms.

        Args:
            entries: source terms, with at least one word each, and their target terms; several
                with the same source term add alternatives.
            is_case_sensitive: compare terms and texts with their case.
        """
        self.is_case_sensitive = is_case_sensitive
        alternatives: dict[tuple[str, ...], dict[str, None]] = {}
        for source, targets in entries:
            words = _Words(source, is_case_sensitive)
            key = words.key(0, len(words.spans))
            alternatives.setdefault(key, {}).update(dict.fromkeys(targets))
        self._targets = {key: tuple(targets) for key, targets in alternatives.items()}
        lengths: dict[str, set[int]] = {}
        for key in self._targets:
            lengths.setdefault(key[0], set()).add(len(key))
        self._lengths = {word: sorted(found, reverse=True) for word, found in lengths.items()}

    @classmethod
    def read(cls, path: Path, *, is_case_sensitive: bool) -> "Glossary":
        """Read a glossary.

        Args:
            path: the file; see the module.
            is_case_sensitive: compare terms and texts with their case.

        Raises:
            ConfigError: the file cannot be opened.
            DataError: a line is malformed, or there are no terms.
        """
        lines = list(read_list(path))
        entries = [
            _entry(line, f"{path}:{number}")
            for number, line in enumerate(lines, 1)
            if line.strip() and not _COMMENT.match(line)
        ]
        if not entries:
            raise DataError(f"{path} has no terms; {_FORM}")
        return cls(entries, is_case_sensitive=is_case_sensitive)

    def find(self, text: str) -> list[Term]:
        """Return the terms in a text, in order and without overlaps.

        From left to right, the longest term counts that begins at a word, and the search continues
        after it. The time is linear in the text, whatever the number of terms.
        """
        words = _Words(text, self.is_case_sensitive)
        terms, index = [], 0
        while index < len(words.folded):
            for length in self._lengths.get(words.folded[index], ()):
                key = words.key(index, length)
                if key in self._targets:
                    start, end = words.spans[index][0], words.spans[index + len(key) - 1][1]
                    terms.append(Term(start, end, self._targets[key]))
                    index += len(key)
                    break
            else:
                index += 1
        return terms

    def __len__(self) -> int:
        """Return the number of different source terms."""
        return len(self._targets)

    def fingerprint(self) -> str:
        """Return a short hash of the terms, whatever the order of the file's lines."""
        entries = sorted((*key, "", *sorted(targets)) for key, targets in self._targets.items())
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:_HASH_DIGITS]


def target_finder(*, is_case_sensitive: bool) -> Callable[[tuple[str, ...], str], list[Term]]:
    """Return a function that finds target terms in a text, and prepares them once."""

    @lru_cache(_NUM_PREPARED)
    def glossary_of(targets: tuple[str, ...]) -> Glossary:
        entries = [(one, (one,)) for one in targets]
        return Glossary(entries, is_case_sensitive=is_case_sensitive)

    return lambda targets, text: glossary_of(targets).find(text)


def without_overlaps(terms: Iterable[Term], spans: Sequence[tuple[int, int]]) -> list[Term]:
    """Return the terms that share no character with spans, such as placeholders.

    Args:
        terms: terms of a text.
        spans: where parts of the text begin and end, in order and without overlaps.
    """
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    return [
        term for term in terms if bisect_right(ends, term.start) >= bisect_left(starts, term.end)
    ]


class _Words:
    """The words of a text, as terms are compared.

    Attributes:
        spans: where each word begins and ends.
        folded: each word without what does not count.
    """

    def __init__(self, text: str, is_case_sensitive: bool) -> None:
        self.spans = word_and_punctuation_spans(text)
        self.folded = [_folded(text[start:end], is_case_sensitive) for start, end in self.spans]
        last_ends = [0, *(end for _, end in self.spans)]
        self._with_space = [
            " " * any(map(str.isspace, text[last_end:start])) + word
            for (start, _), last_end, word in zip(self.spans, last_ends, self.folded, strict=False)
        ]

    def key(self, first: int, length: int) -> tuple[str, ...]:
        """Return what is the same for terms that match: words, and the spaces between them."""
        return (self.folded[first], *self._with_space[first + 1 : first + length])


def _folded(word: str, is_case_sensitive: bool) -> str:
    if word.isascii():
        return word if is_case_sensitive else word.lower()
    visible = "".join(one for one in word if unicodedata.category(one) != "Cf")
    normal = unicodedata.normalize("NFKC", visible)
    if is_case_sensitive:
        return normal
    return unicodedata.normalize("NFKC", normal.casefold())


def _entry(line: str, where: str) -> tuple[str, list[str]]:
    """Return the source term and the target terms of a line."""
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != 2:
        raise DataError(f"{where}: {counted(len(columns), 'columns')} instead of 2; {_FORM}")
    source, targets = columns[0], _alternatives(columns[1])
    for name, texts in (("source", [source]), ("target", targets)):
        if not all(map(word_and_punctuation_spans, texts)):
            raise DataError(f"{where}: an empty {name} term; {_FORM}")
    return source, targets


def _alternatives(text: str) -> list[str]:
    """Return the alternatives of a target column, without escapes."""
    alternatives = [""]
    for part in _TARGET_PART.findall(text):
        if part == "|":
            alternatives.append("")
        else:
            alternatives[-1] += part[-1] if part in ("\\|", "\\\\") else part
    return [one.strip() for one in alternatives]
