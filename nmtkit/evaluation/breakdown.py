"""Breakdowns of a score: sentences by their length, words by their frequency.

Words are runs of letters and digits, and whatever else is no space, one by one; of several
references the first one counts.
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
"""The rarest word of each class. Source: Neubig et al. 2019, "compare-mt", its defaults."""


@dataclass(frozen=True)
class LengthClass:
    """Sentences of about one length.

    Attributes:
        label: their lengths, such as 1-10 or 61+.
        indices: which ones they are, from 0.
    """

    label: str
    indices: Sequence[int]


@dataclass(frozen=True)
class FrequencyClass:
    """Words that are about equally frequent.

    Attributes:
        label: how often they are in the counted text, such as 5-9 or 1000+.
        num_words: of this class in the reference.
        num_translated: of this class in the translation.
        num_matches: of them, right ones: also in the reference of their sentence, and not more
            often than there.
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
    """Cut a line into words."""
    return _WORD.findall(line)


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words of a text."""
    return Counter(word for line in lines for word in words_of(line))


def by_length(reference: Sequence[str]) -> list[LengthClass]:
    """Sort sentences into classes by the length of their reference; only those with sentences."""
    members: list[list[int]] = [[] for _ in LENGTHS]
    for index, line in enumerate(reference):
        members[_class_of(len(words_of(line)), LENGTHS)].append(index)
    labels = _labels(LENGTHS)
    return [LengthClass(labels[i], members[i]) for i in range(len(LENGTHS)) if members[i]]


def by_frequency(
    hypotheses: Sequence[str], reference: Sequence[str], frequencies: Mapping[str, int]
) -> list[FrequencyClass]:
    """Compare words in classes by their frequency.

    Args:
        hypotheses: the translations.
        reference: what they should have been, equally many lines.
        frequencies: how often words are in some text, such as that of training.

    Returns:
        All classes, the rarest first.
    """
    words, translated, matches = ([0] * len(FREQUENCIES) for _ in range(3))
    for hypothesis, right in zip(hypotheses, reference, strict=True):
        found, wanted = Counter(words_of(hypothesis)), Counter(words_of(right))
        for counts, totals in ((wanted, words), (found, translated), (found & wanted, matches)):
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
