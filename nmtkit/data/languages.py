"""Languages of lines: trigrams of letters distinguish two, an identifier knows others.

The trigrams are counted in a text of both languages. The identifier is py3langid, an optional
package.
Source: Cavnar and Trenkle 1994 (letter n-grams identify languages).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rank = Callable[[str], Sequence[tuple[str, float]]]
"""Returns languages, always the same ones, with the log-likelihood of a line in each."""

_BITS = 14
_NUM_BINS = 2**_BITS
_SMOOTHING = 0.5
_PRIMES = (np.uint32(2654435761), np.uint32(2246822519), np.uint32(3266489917))

_MIN_BYTES = 20
"""Letters, in UTF-8, of the shortest line whose language is identified."""

_MIN_NATS = 15
"""Nats by which a line of another language is more likely in it; related languages differ less.

Of 14 660 lines in 18 languages, 0.1 % exceed it in their own language, and 99.8 % in the others.
"""

_USUAL_SHARE = 0.05
"""Share of a text's lines from which a language is one of the text's."""


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

    def log_probabilities(self) -> NDArray[np.float64]:
        """Return (_NUM_BINS,) the smoothed log-probability of each trigram in these lines."""
        smoothed = np.bincount(self.bins, minlength=_NUM_BINS) + _SMOOTHING
        result: NDArray[np.float64] = np.log(smoothed / smoothed.sum())
        return result

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N,) the mean of the trigrams' values in each line; 0 without letters."""
        sums = np.bincount(self.line, values[self.bins], len(self.letters))
        result: NDArray[np.float64] = sums / np.maximum(self.letters, 1)
        return result


def language_identifier() -> Rank | None:
    """Return the identifier of py3langid; None if the package is not installed."""
    try:
        from py3langid import rank
    except ImportError:
        return None
    identifier: Rank = rank
    return identifier


@dataclass(frozen=True)
class LanguageScores:
    """How likely lines are in K languages.

    Attributes:
        names: the languages.
        values: (N, K) log-likelihoods of each line; all 0 if it is too short to be judged.
    """

    names: Sequence[str]
    values: NDArray[np.float32]

    @staticmethod
    def of(lines: Sequence[str], rank: Rank) -> "LanguageScores":
        """Return the scores of lines by an identifier."""
        names = sorted(dict(rank("")))
        values = np.zeros((len(lines), len(names)), np.float32)
        for index, line in enumerate(lines):
            if len("".join(filter(str.isalpha, line)).encode()) >= _MIN_BYTES:
                values[index] = [score for _, score in sorted(rank(line))]
        return LanguageScores(names, values)

    @property
    def are_judged(self) -> NDArray[np.bool_]:
        """Whether each line is long enough to be judged."""
        judged: NDArray[np.bool_] = np.count_nonzero(self.values, axis=1) > 0
        return judged

    def most_likely(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return (K,) the number of the chosen lines that are most likely in each language."""
        return np.bincount(self.values[chosen].argmax(axis=1), minlength=len(self.names))

    def in_other_language(self, known: "LanguageScores") -> NDArray[np.bool_]:
        """Return (N,) whether each line is in none of the usual languages of another text."""
        counts = known.most_likely(known.are_judged)
        usual = counts >= max(1, _USUAL_SHARE * counts.sum())
        if not usual.any():
            return np.zeros(len(self.values), bool)
        nats: NDArray[np.float32] = self.values.max(axis=1) - self.values[:, usual].max(axis=1)
        return nats > _MIN_NATS
