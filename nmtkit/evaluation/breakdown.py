"""Breakdowns of a score: sentences by length, words by frequency, n-grams that a system misses.

Punctuation marks are words of their own. Of several references only the first is used.
Source of the n-grams: Neubig et al. 2019, "compare-mt", n-gram difference analysis; a and b matches
of two systems are sorted by log2((a + 1) / (b + 1)).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from nmtkit.text.words import words_and_punctuation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LENGTHS = (0, 1, 11, 21, 31, 41, 51, 61)
"""The shortest sentence of each class, in words."""
FREQUENCIES = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
"""The lowest frequency of each class. Source: Neubig et al. 2019, "compare-mt", its defaults."""


@dataclass(frozen=True)
class LengthClass:
    """Sentences of similar length.

    Attributes:
        label: range of lengths in words, such as 1-10 or 61+.
        indices: of the sentences, from 0.
    """

    label: str
    indices: Sequence[int]


@dataclass(frozen=True)
class FrequencyClass:
    """Words of similar frequency.

    Attributes:
        label: range of counts in the counted text, such as 5-9 or 1000+.
        num_words: words of this class in the reference.
        num_translated: words of this class in the translation.
        num_matches: correct words among those: each occurs in the reference of its sentence, and
            counts at most as often as there.
    """

    label: str
    num_words: int
    num_translated: int
    num_matches: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, from 0 to 100."""
        total = self.num_words + self.num_translated
        return 200 * self.num_matches / total if total else 0.0


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words of a text."""
    return Counter(word for line in lines for word in words_and_punctuation(line))


def by_length(reference: Sequence[str]) -> list[LengthClass]:
    """Group sentences by the length of their reference; empty classes are left out."""
    members: list[list[int]] = [[] for _ in LENGTHS]
    for index, line in enumerate(reference):
        members[_class_of(len(words_and_punctuation(line)), LENGTHS)].append(index)
    labels = _labels(LENGTHS)
    return [LengthClass(labels[i], members[i]) for i in range(len(LENGTHS)) if members[i]]


def by_frequency(
    hypotheses: Sequence[str], reference: Sequence[str], frequencies: Mapping[str, int]
) -> list[FrequencyClass]:
    """Count the correct words of each frequency class.

    Args:
        hypotheses: the translations.
        reference: the same number of lines.
        frequencies: counts of words in some text, such as the training text.

    Returns:
        All classes, the rarest words first.
    """
    words, translated, matches = ([0] * len(FREQUENCIES) for _ in range(3))
    for hypothesis, line in zip(hypotheses, reference, strict=True):
        found, expected = (Counter(words_and_punctuation(one)) for one in (hypothesis, line))
        for counts, totals in ((expected, words), (found, translated), (found & expected, matches)):
            for word, count in counts.items():
                totals[_class_of(frequencies.get(word, 0), FREQUENCIES)] += count
    rows = zip(_labels(FREQUENCIES), words, translated, matches, strict=True)
    return [FrequencyClass(*row) for row in rows]


def _class_of(number: int, starts: Sequence[int]) -> int:
    return bisect_right(starts, number) - 1


def _labels(starts: Sequence[int]) -> list[str]:
    ends = [start - 1 for start in starts[1:]]
    ranges = zip(starts, ends, strict=False)
    inner = [str(start) if start == end else f"{start}-{end}" for start, end in ranges]
    return [*inner, f"{starts[-1]}+"]


ORDERS = (1, 2, 3, 4)
MIN_DIFFERENCE = 2
"""Matches that a system has more than the other one; most n-grams occur once, by chance."""

Ngram = tuple[str, ...]

NgramCounts = dict[Ngram, list[int]]
"""Occurrences of n-grams of the reference: per system, the correct ones; last, of the reference.

Those are correct that the reference of the sentence has, too, at most as often as there.
"""


def telling_ngrams(
    systems: Sequence[Sequence[str]], reference: Iterable[str], most: int
) -> NgramCounts:
    """Return the n-grams that best distinguish any two systems, or a system from the reference.

    Args:
        systems: the translations of each system.
        reference: the same number of lines; read once.
        most: n-grams per order and ordered pair of systems; the reference counts as a system.

    Returns:
        Their counts, in the order of the alphabet. Those of a pair have `a - b` of at least
        `MIN_DIFFERENCE`, and are the first ones by `log2((a + 1) / (b + 1))`, by a - b, and by the
        alphabet.
    """
    import numpy as np  # only a page needs it, and it takes longer to import than most texts

    counts = _count(systems, reference)
    chosen: set[Ngram] = set()
    for order in ORDERS:
        ngrams = sorted(ngram for ngram in counts if len(ngram) == order)
        if ngrams:
            matches = np.array([counts[ngram] for ngram in ngrams])  # (n-grams, systems + 1)
            chosen.update(ngrams[row] for row in _telling_rows(matches, most))
    return {ngram: counts[ngram] for ngram in sorted(chosen)}


def ngrams_of(words: Sequence[str]) -> Iterator[Ngram]:
    """Yield the n-grams of a sentence, of each of `ORDERS`."""
    for order in ORDERS:
        yield from zip(*(words[start:] for start in range(order)), strict=False)


def _count(systems: Sequence[Sequence[str]], reference: Iterable[str]) -> NgramCounts:
    """Count each n-gram of the reference: matches per system, then its own occurrences."""
    counts: NgramCounts = {}
    for expected_line, *lines in zip(reference, *systems, strict=True):
        expected = Counter(ngrams_of(words_and_punctuation(expected_line)))
        for ngram, number in expected.items():
            counts.setdefault(ngram, [0] * (len(systems) + 1))[-1] += number
        for system, line in enumerate(lines):
            found = Counter(ngrams_of(words_and_punctuation(line)))
            for ngram, number in (found & expected).items():
                counts[ngram][system] += number
    return counts


def _telling_rows(matches: "NDArray[np.int64]", most: int) -> set[int]:
    """Return the rows that best distinguish any two columns; at most `most` per ordered pair."""
    import numpy as np

    chosen: set[int] = set()
    for one, other in permutations(range(matches.shape[1]), 2):
        larger = np.flatnonzero(matches[:, one] - matches[:, other] >= MIN_DIFFERENCE)
        a, b = matches[larger, one], matches[larger, other]
        ranking = np.lexsort((larger, b - a, -(a + 1) / (b + 1)))  # the last key comes first
        chosen.update(larger[ranking[:most]].tolist())
    return chosen
