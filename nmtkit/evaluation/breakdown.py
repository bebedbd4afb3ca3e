"""Breakdowns of a score: sentences by length, words by frequency.

A word is a run of letters and digits, or any other single character that is not a space. Of several
references only the first is used.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+|[^\w\s]")
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


def words_of(line: str) -> list[str]:
    """Split a line into words."""
    return _WORD.findall(line)


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words of a text."""
    return Counter(word for line in lines for word in words_of(line))


def by_length(reference: Sequence[str]) -> list[LengthClass]:
    """Group sentences by the length of their reference; empty classes are left out."""
    members: list[list[int]] = [[] for _ in LENGTHS]
    for index, line in enumerate(reference):
        members[_class_of(len(words_of(line)), LENGTHS)].append(index)
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
        found, expected = Counter(words_of(hypothesis)), Counter(words_of(line))
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
