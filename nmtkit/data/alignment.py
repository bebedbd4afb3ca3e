"""Whether the lines of two texts correspond, from their lengths and the words that they share.

In a block of consecutive pairs, every source line is compared with every target line. If the lines
correspond, the pairs are more alike than two lines at random.
Source: Gale and Church 1993, https://aclanthology.org/J93-1004 (lengths)
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from nmtkit.text.corpus import Pair
from nmtkit.text.words import words_of

MAX_LAG = 8
"""Largest shift that is recognised, in lines."""

LAGS = range(-MAX_LAG, MAX_LAG + 1)

MIN_PAIRS = 32
"""Pairs of the shortest block that is judged."""

MIN_CORRESPONDENCE = 2.0
"""Standard deviations by which the lines of a block correspond at least."""

SURE_CORRESPONDENCE = 6.0
"""The same by the lengths alone, which are quick to compare."""

_MIN_LAG_CORRESPONDENCE = 5.0
"""The same for the shift of a part of a text."""

_MIN_SPREAD = 0.25
"""Standard deviation of the logarithm of lengths, below which lengths say too little."""

_DEVIATION = 0.35
"""Standard deviation of the logarithm of the ratio of two translations' lengths."""


@dataclass(frozen=True)
class Misaligned:
    """A part of a text whose lines do not correspond.

    Attributes:
        first, last: indices of its first and last block.
        lag: target i + lag is the translation of source i, if that was recognised; else 0.
    """

    first: int
    last: int
    lag: int


def find_misaligned(blocks: Sequence[Sequence[Pair]]) -> Misaligned | None:
    """Return the longest part of a text whose lines do not correspond, or None.

    In this part, the blocks that do not correspond exceed those that do by as many as possible.

    Args:
        blocks: consecutive pairs each, in the order of the text.
    """
    best = begin = total = most = 0
    found: Misaligned | None = None
    wrong = [_is_wrong(pairs) for pairs in blocks]
    for index, is_wrong in enumerate(wrong):
        if total <= 0:
            begin, total = index, 0
        total += 0 if is_wrong is None else 1 if is_wrong else -1
        if is_wrong and total > most:
            most, best = total, index
            found = Misaligned(begin, best, 0)
    if found is None:
        return None
    while not wrong[found.first]:
        found = replace(found, first=found.first + 1)
    chosen = [blocks[index] for index in range(found.first, found.last + 1) if wrong[index]]
    by_lag = sum(map(correspondence, chosen), np.zeros(len(LAGS))) / len(chosen) ** 0.5
    lag = int(by_lag.argmax())
    if by_lag[lag] <= _MIN_LAG_CORRESPONDENCE:
        return found
    # Neighbouring lines are alike in some texts, so blocks after the shift may seem to correspond.
    each = [correspondence(pairs) for pairs in blocks[: found.last + 1]]
    gains = np.array([one[lag] - one[MAX_LAG] for one in each])
    first = int(np.cumsum(gains[::-1])[::-1].argmax())
    return Misaligned(first, found.last, LAGS[lag])


def _is_wrong(pairs: Sequence[Pair]) -> bool | None:
    """Return whether the lines of a block do not correspond; None if it cannot be judged."""
    pairs = [pair for pair in pairs if all(map(str.strip, pair))]
    if len(pairs) < MIN_PAIRS:
        return None
    lengths = _lengths(pairs)
    if _by_lag(lengths)[MAX_LAG] >= SURE_CORRESPONDENCE:
        return False
    if correspondence(pairs)[MAX_LAG] >= MIN_CORRESPONDENCE:
        return False
    spread = np.log([[len(line) + 2 for line in pair] for pair in pairs]).std(axis=0).min()
    return True if spread >= _MIN_SPREAD else None


def correspondence(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Return by how many standard deviations lines correspond, for each lag.

    Args:
        pairs: consecutive pairs.

    Returns:
        (2 * MAX_LAG + 1,) for each of `LAGS`, the deviation of source i and target i + lag from
        two lines at random: about 0 if they do not correspond.
    """
    return _by_lag(_lengths(pairs) + _shared_words(pairs))


def _by_lag(alike: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how many deviations each diagonal of (n, n) likenesses differs from chance."""
    alike = alike - alike.mean(axis=0)
    alike -= alike.mean(axis=1, keepdims=True)
    scale = float(np.sqrt((alike**2).mean())) or 1.0
    sums = [alike.diagonal(lag) for lag in LAGS]
    return np.array([float(one.sum()) / (scale * len(one) ** 0.5) for one in sums])


def _lengths(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Return (n, n) log-likelihood ratios of lengths, up to constants of rows and columns."""
    lengths = np.log([[len(line) + 2 for line in pair] for pair in pairs]) / _DEVIATION
    centred = lengths - lengths.mean(axis=0)
    product: NDArray[np.float64] = np.outer(centred[:, 0], centred[:, 1])
    return product


def _shared_words(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Return (n, n) sums of the information of words that two lines share."""
    sides = [[_words(line) for line in lines] for lines in zip(*pairs, strict=True)]
    counts = [Counter(word for words in side for word in words) for side in sides]
    shared = {word: index for index, word in enumerate(counts[0].keys() & counts[1].keys())}
    matrices = []
    for side in sides:
        matrix = np.zeros((len(pairs), len(shared)))
        cells = [
            (row, shared[word])
            for row, words in enumerate(side)
            for word in words
            if word in shared
        ]
        if cells:
            rows, columns = zip(*cells, strict=True)
            matrix[rows, columns] = 1
        matrices.append(matrix)
    weights = [log(len(pairs) / max(count[word] for count in counts)) for word in shared]
    result: NDArray[np.float64] = (matrices[0] * weights) @ matrices[1].T
    return result


def _words(line: str) -> set[str]:
    """Return words without punctuation at their ends, and the last character."""
    return {word.strip(".,;:!?\"'()") for word in words_of(line)} | {line[-1:]}
