"""EVALB's parameter files: the labels and words that count, and those that are equal.

Source: Sekine and Collins 1997, EVALB; its README, section 6, and the code that reads them.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nmtkit.errors import ConfigError
from nmtkit.text.lines import read_list

_COMMENT = "#"
_HASH_DIGITS = 8
_DIGITS = re.compile("[0-9]{1,9}")
_SHORTEST_ENTRY = 3
"""EVALB skips shorter lines."""

_NUMBERS = {
    "DEBUG": "",
    "LABELED": "is_labelled",
    "MAX_ERROR": "max_error",
    "CUTOFF_LEN": "cutoff_length",
}
_LABELS = {
    "DELETE_LABEL": "deleted",
    "DELETE_LABEL_FOR_LENGTH": "deleted_for_length",
    "QUOTE_LABEL": "quotes",
}
_PAIRS = {"EQ_LABEL": "equal_labels", "EQ_WORD": "equal_words"}
"""Fields of `Parameters` by EVALB's names; DEBUG has none."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of the comparison of trees.

    Attributes:
        max_error: EVALB stops at the second error beyond this number.
        cutoff_length: sentences of at most this many words also have scores of their own.
        is_labelled: brackets match only if their labels match.
        deleted: labels that do not count: of a word, the word is deleted; of a constituent, only
            its bracket.
        deleted_for_length: labels of words that do not count for the length of a sentence.
        quotes: labels of quotation marks, to which a parser may give other labels.
        equal_labels, equal_words: pairs; symmetric, not transitive.
    """

    max_error: int
    cutoff_length: int
    is_labelled: bool
    deleted: frozenset[str]
    deleted_for_length: frozenset[str]
    quotes: frozenset[str]
    equal_labels: frozenset[tuple[str, str]]
    equal_words: frozenset[tuple[str, str]]

    @cached_property
    def equals(self) -> Mapping[str, Sequence[str]]:
        """For each label of a pair, all equal labels, itself included."""
        equals: dict[str, list[str]] = {}
        for one, two in sorted(self.equal_labels | {(two, one) for one, two in self.equal_labels}):
            equals.setdefault(one, [one]).append(two)
        return equals

    @cached_property
    def deleted_brackets(self) -> frozenset[str]:
        """Labels of brackets that do not count: `deleted` and equal labels."""
        return self.deleted.union(*(self.equals.get(label, ()) for label in self.deleted))

    def name(self) -> str:
        """Return the name for signatures: COLLINS, or a hash of all that scores depend on."""
        if replace(self, max_error=COLLINS.max_error) == COLLINS:
            return "COLLINS"
        deciding = [
            self.cutoff_length,
            self.is_labelled,
            *map(sorted, (self.deleted, self.deleted_for_length, self.quotes)),
            *map(sorted, (self.equal_labels, self.equal_words)),
        ]
        return hashlib.sha256(json.dumps(deciding).encode()).hexdigest()[:_HASH_DIGITS]

    def is_equal_word(self, one: str, two: str) -> bool:
        """Return whether words match."""
        return one == two or not self.equal_words.isdisjoint({(one, two), (two, one)})

    def is_equal_label(self, one: str, two: str) -> bool:
        """Return whether labels match."""
        return one == two or two in self.equals.get(one, ())


COLLINS = Parameters(
    max_error=10,
    cutoff_length=40,
    is_labelled=True,
    deleted=frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}),
    deleted_for_length=frozenset({"-NONE-"}),
    quotes=frozenset(),
    equal_labels=frozenset({("ADVP", "PRT")}),
    equal_words=frozenset(),
)
"""COLLINS.prm, the usual parameters for parsers of English. Source: Collins 1997."""


def parameters_of(prm: str) -> Parameters:
    """Return the parameters of the file `prm`, or COLLINS if it is "".

    Raises:
        ConfigError, DataError: see `read_parameters`.
    """
    return read_parameters(Path(prm)) if prm else COLLINS


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file; missing numbers are those of COLLINS, as in EVALB.

    Raises:
        ConfigError: the file cannot be read, or a line is invalid.
        DataError: the file is not UTF-8, or too large.
    """
    known = {**_NUMBERS, **_LABELS, **_PAIRS}
    sets: dict[str, set[Any]] = {name: set() for name in (*_LABELS.values(), *_PAIRS.values())}
    found: dict[str, Any] = {}
    for number, line in enumerate(read_list(path), 1):
        if line.startswith(_COMMENT) or len(line.rstrip()) < _SHORTEST_ENTRY:
            continue
        where = f"{path}:{number}"
        key, *values = line.split()
        if key not in known:
            raise ConfigError(f"{where}: no parameter {key!r}; known are: {', '.join(known)}")
        if len(values) != (wanted := 2 if key in _PAIRS else 1):
            raise ConfigError(
                f"{where}: {key} has {len(values)} values and needs {wanted}; correct the line"
            )
        if key in _NUMBERS:
            found[known[key]] = _number(where, key, values[0])
        else:
            sets[known[key]].add(tuple(values) if key in _PAIRS else values[0])
    found.pop(_NUMBERS["DEBUG"], None)
    found["is_labelled"] = bool(found.get("is_labelled", COLLINS.is_labelled))
    found |= {name: frozenset(one) for name, one in sets.items()}
    return replace(COLLINS, **found)


def _number(where: str, key: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ConfigError(
            f"{where}: {key} ({text}) must be a whole number of at most 9 digits; correct the line"
        )
    if key == "DEBUG" and int(text):
        raise ConfigError(
            f"{where}: DEBUG ({text}) has no effect here; set it to 0, and use --sentence-level "
            "to see each sentence"
        )
    return int(text)
