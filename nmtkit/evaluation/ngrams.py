"""N-grams of a reference that one system has in its translations and another one misses.

An n-gram is correct if the reference of its sentence has it too, and counts at most as often as
there. Source: Neubig et al. 2019, "compare-mt", n-gram difference analysis: n-grams are sorted by
(a + 1) / (a + b + 2) for a and b matches of the two systems, as here by log2((a + 1) / (b + 1)).
Words are those of `breakdown.words_of`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from nmtkit.evaluation.breakdown import words_of

ORDERS = (1, 2, 3, 4)
MIN_DIFFERENCE = 2
"""Matches that a system has more than the other one; most n-grams occur once, by chance."""

Ngram = tuple[str, ...]
Rows = npt.NDArray[np.int64]
"""Indices of n-grams."""


@dataclass(frozen=True)
class NgramMatches:
    """An n-gram of the reference, and how often each system has it right.

    Attributes:
        words: the n-gram.
        num_reference: occurrences in the reference.
        num_matches: correct occurrences, per system.
    """

    words: Ngram
    num_reference: int
    num_matches: Sequence[int]


def telling_ngrams(
    systems: Sequence[Sequence[str]], reference: Iterable[str], most: int
) -> list[NgramMatches]:
    """Return the n-grams that best distinguish any two systems, or a system from the reference.

    Args:
        systems: the translations of each system.
        reference: the same number of lines; read once.
        most: n-grams per order and ordered pair of systems; the reference counts as a system.

    Returns:
        Each n-gram once, in the order of the alphabet. Those of a pair have `a - b` of at least
        `MIN_DIFFERENCE`, and are the first ones by `log2((a + 1) / (b + 1))`, by a - b, and by the
        alphabet.
    """
    counts = _count(systems, reference)
    chosen: set[Ngram] = set()
    for order in ORDERS:
        ngrams = sorted(ngram for ngram in counts if len(ngram) == order)
        if ngrams:
            matches = np.array([counts[ngram] for ngram in ngrams])  # (n-grams, systems + 1)
            chosen.update(ngrams[row] for row in _telling_rows(matches, most))
    rows = [(ngram, counts[ngram]) for ngram in sorted(chosen)]
    return [NgramMatches(ngram, row[-1], row[:-1]) for ngram, row in rows]


def ngrams_of(words: Sequence[str]) -> Iterator[Ngram]:
    """Yield the n-grams of a sentence, of each of `ORDERS`."""
    for order in ORDERS:
        yield from zip(*(words[start:] for start in range(order)), strict=False)


def _count(systems: Sequence[Sequence[str]], reference: Iterable[str]) -> dict[Ngram, list[int]]:
    """Count each n-gram of the reference: matches per system, then its own occurrences."""
    counts: dict[Ngram, list[int]] = {}
    for expected_line, *lines in zip(reference, *systems, strict=True):
        expected = Counter(ngrams_of(words_of(expected_line)))
        for ngram, number in expected.items():
            counts.setdefault(ngram, [0] * (len(systems) + 1))[-1] += number
        for system, line in enumerate(lines):
            for ngram, number in (Counter(ngrams_of(words_of(line))) & expected).items():
                counts[ngram][system] += number
    return counts


def _telling_rows(matches: Rows, most: int) -> set[int]:
    """Return the rows that best distinguish any two columns; at most `most` per ordered pair."""
    chosen: set[int] = set()
    for one, other in permutations(range(matches.shape[1]), 2):
        larger = np.flatnonzero(matches[:, one] - matches[:, other] >= MIN_DIFFERENCE)
        a, b = matches[larger, one], matches[larger, other]
        ranking = np.lexsort((larger, b - a, -(a + 1) / (b + 1)))  # the last key comes first
        chosen.update(larger[ranking[:most]].tolist())
    return chosen
