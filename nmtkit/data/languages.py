"""Lines in another language than the rest, from trigrams of letters, without models of languages.

Lines are divided into two groups that have their own trigrams. The groups are two languages if the
smaller one also lacks the frequent words of the other. Topics and styles differ in trigrams only.
Source: Cavnar and Trenkle 1994 (letter n-grams identify languages); the division is
expectation-maximisation with hard assignments, Nigam et al. 2000.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_LETTERS = 20
"""Letters of the shortest line that is judged."""

_MIN_KNOWN_LETTERS = 5_000
"""Letters of the smallest text that a language is known from."""

_MIN_TEXT_LETTERS = 20_000
"""Letters of the smallest text, with the known one, whose frequent words are known."""

_BITS = 14
_NUM_BINS = 2**_BITS
_SMOOTHING = 0.5
_PRIMES = (np.uint32(2654435761), np.uint32(2246822519), np.uint32(3266489917))

_MIN_GAIN = 0.3
"""Nats per letter by which a line of another language fits its own group better."""

_FIRST_SHARE = 0.03
"""Share of the lines, the least likely ones, that the division begins with."""

_PRIOR_LETTERS = 2000
"""Weight of the rest's trigrams in the model of a group."""

_MAX_ROUNDS = 4

_NUM_WORDS = 500
"""Frequent words; they cover more than a third of a text in most languages."""

_MOST_FAMILIAR = 0.4
"""Most of the rest's coverage by frequent words that another language has."""


@dataclass(frozen=True)
class Trigrams:
    """The trigrams of some lines: each letter with its neighbours; all else counts as a space.

    Attributes:
        bins: (X,) the bin of each trigram.
        line: (X,) the index of its line.
        letters: (N,) letters of each line.
    """

    bins: NDArray[np.intp]
    line: NDArray[np.intp]
    letters: NDArray[np.intp]

    @staticmethod
    def of(lines: Sequence[str]) -> "Trigrams":
        """Return the trigrams of lines, without regard to case."""
        text = "\n".join(["", *lines, ""]).lower()
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        present = np.flatnonzero(np.bincount(codes))
        is_letter = np.array([chr(code).isalpha() for code in present])
        table = np.full(present[-1] + 1, ord(" "), np.uint32)
        table[present[is_letter]] = present[is_letter]
        plain = table[codes]
        middle = np.flatnonzero(plain != ord(" "))
        hashed = np.zeros(len(middle), np.uint32)
        for shift, prime in zip((-1, 0, 1), _PRIMES, strict=True):
            hashed += plain[middle + shift] * prime
        line = (np.cumsum(codes == ord("\n")) - 1)[middle]
        letters = np.bincount(line, minlength=len(lines))
        return Trigrams((hashed >> np.uint32(32 - _BITS)).astype(np.intp), line, letters)

    def counts(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return (_NUM_BINS,) how often each trigram occurs in the chosen lines."""
        return np.bincount(self.bins[chosen[self.line]], minlength=_NUM_BINS).astype(np.float64)

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N,) the mean of the trigrams' values in each line; 0 without letters."""
        sums = np.bincount(self.line, values[self.bins], len(self.letters))
        result: NDArray[np.float64] = sums / np.maximum(self.letters, 1)
        return result


def log_model(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smoothed log-probabilities of counted trigrams."""
    smoothed = counts + _SMOOTHING
    result: NDArray[np.float64] = np.log(smoothed / smoothed.sum())
    return result


def other_language(
    lines: Sequence[str],
    trigrams: Trigrams,
    judged: NDArray[np.bool_],
    known: Sequence[str],
    known_counts: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return the lines in another language than most lines, or than lines of a known language.

    Args:
        lines: some text.
        trigrams: its trigrams.
        judged: (N,) the lines to judge; the others are ignored.
        known: lines of the known language; may be empty, and is ignored if it is small.
        known_counts: (_NUM_BINS,) their trigrams.

    Returns:
        (N,) True for the lines in another language; none if all are in one language, or if there
        is too little text.
    """
    judged = judged & (trigrams.letters >= MIN_LETTERS)
    if known_counts.sum() < _MIN_KNOWN_LETTERS:
        known, known_counts = (), np.zeros_like(known_counts)
    num_letters = trigrams.letters[judged].sum()
    if num_letters == 0 or known_counts.sum() + num_letters < _MIN_TEXT_LETTERS:
        return np.zeros_like(judged)
    rest_counts = known_counts if known else trigrams.counts(judged)
    likelihoods = trigrams.means(log_model(rest_counts))
    group = judged & (likelihoods <= np.quantile(likelihoods[judged], _FIRST_SHARE))
    rest = known or [lines[index] for index in np.flatnonzero(judged & ~group).tolist()]
    for _ in range(_MAX_ROUNDS):
        previous, group = group, judged & (_gains(trigrams, group, rest_counts) > _MIN_GAIN)
        group = _without_frequent_words(lines, group, rest)
        if not group.any() or (group == previous).all():
            break
        rest_counts = known_counts + trigrams.counts(judged & ~group)
    if 2 * np.count_nonzero(group) > np.count_nonzero(judged):
        return group
    rest = [*known, *(lines[index] for index in np.flatnonzero(judged & ~group).tolist())]
    return _without_frequent_words(lines, group, rest)


def _gains(
    trigrams: Trigrams, group: NDArray[np.bool_], rest_counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (N,) nats per letter by which each line fits a group better than the rest.

    A line of one half is compared with the group's lines of the other half, never with itself.
    """
    rest = log_model(rest_counts)
    prior = _PRIOR_LETTERS * np.exp(rest)
    is_even = np.arange(len(group)) % 2 == 0
    gains = np.zeros(len(group))
    for half in (is_even, ~is_even):
        counts = trigrams.counts(group & ~half) + prior
        gains[half] = trigrams.means(np.log(counts / counts.sum()) - rest)[half]
    return gains


def _without_frequent_words(
    lines: Sequence[str], group: NDArray[np.bool_], rest: Sequence[str]
) -> NDArray[np.bool_]:
    """Return the lines of a group that have much fewer frequent words than the rest."""
    if not group.any():
        return group
    counts = Counter(word for line in rest for word in line.lower().split())
    frequent = dict(counts.most_common(_NUM_WORDS))
    most = _MOST_FAMILIAR * sum(frequent.values()) / max(counts.total(), 1)
    kept = np.zeros_like(group)
    for index in np.flatnonzero(group).tolist():
        words = lines[index].lower().split()
        kept[index] = sum(word in frequent for word in words) <= most * len(words)
    return kept


def are_first(lines: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each line differs from all earlier ones."""
    first = {line: index for index, line in reversed([*enumerate(lines)])}
    result = np.zeros(len(lines), bool)
    result[[*first.values()]] = True
    return result
