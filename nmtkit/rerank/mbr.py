"""Expected utilities of translations, for minimum Bayes risk (MBR) decoding.

The expected utility of a hypothesis is the mean of its sentence-level scores against references,
which are often the hypotheses themselves: samples of a model. Source: Eikema and Aziz 2020, "Is MAP
Decoding All You Need?".

All pairs of the texts of a line are compared together. Each occurrence of an n-gram, such as the
second "is" of a text, is a column of a matrix that has a row per text and holds 0 and 1. The
product of two such matrices counts the common n-grams of all pairs. These counts are exact.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CHRF_ORDER, CHRF_BETA = 6, 2
BLEU_ORDER = 4

_BLOCK_CELLS = 2**22
"""Cells of a matrix of n-grams: 16 MiB."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Hypotheses (H texts) compared with references (R texts, or 1 if they are aggregated).

    Attributes:
        num_hypothesis_ngrams: (orders, H, 1), the n-grams of each hypothesis.
        num_reference_ngrams: (orders, 1, R), those of each reference.
        num_common_ngrams: (orders, H, R), the matches of each pair.
    """

    num_hypothesis_ngrams: Floats
    num_reference_ngrams: Floats
    num_common_ngrams: Floats


@dataclass(frozen=True)
class Utility:
    """A sentence-level metric that compares n-grams.

    Attributes:
        max_order: length of the longest n-grams.
        segment: returns the units of each text, its characters or words.
        score: returns the scores (H, R), 0 to 100, of a comparison.
    """

    max_order: int
    segment: Callable[[Iterable[str]], list[Sequence[str]]]
    score: Callable[[Comparison], Floats]


def expected_utilities(
    utility: str, hypotheses: Sequence[str], references: Sequence[str], is_aggregated: bool
) -> list[float]:
    """Return the expected utility of each hypothesis.

    Exact, it equals the mean of sacreBLEU's sentence scores over the references. The time grows
    with hypotheses times references, and so does the memory: 8 bytes per pair and order.

    Aggregated, the n-grams of each hypothesis are compared with n-gram counts averaged over the
    references. A match is the smaller one of count and average count, and the length of the
    reference is the average length. The time grows with hypotheses plus references. With one
    reference it is equal to exact. Source: Vamvas and Sennrich 2024, "Linear-time Minimum Bayes
    Risk Decoding with Reference Aggregation", for chrF. BLEU is defined here in the same way:
    matches are clipped by average counts; see `bleu_scores` for its smoothing.

    Args:
        utility: key of `UTILITIES`.
        hypotheses: translations of one source.
        references: one or more translations of the same source; repeated ones count repeatedly.
        is_aggregated: compare with the average of the references.
    """
    assert references, "at least one reference"
    metric = UTILITIES[utility]
    texts = list(dict.fromkeys([*hypotheses, *references]))
    numbers = {text: number for number, text in enumerate(texts)}
    rows = np.array([numbers[text] for text in dict.fromkeys(hypotheses)], np.int64)
    weights = np.bincount([numbers[text] for text in references], minlength=len(texts))
    shares = weights / len(references)
    counts = list(_count_ngrams(metric.segment(texts), metric.max_order))
    totals = np.stack([one.totals() for one in counts])  # (orders, texts)
    if is_aggregated:
        common = np.stack([one.common_with_average(shares)[rows, None] for one in counts])
        compared = Comparison(totals[:, rows, None], (totals @ shares)[:, None, None], common)
        utilities = metric.score(compared)[:, 0]
    else:
        columns = np.flatnonzero(weights)
        common = np.stack([one.common(rows, columns) for one in counts])
        compared = Comparison(totals[:, rows, None], totals[:, None, columns], common)
        # BLAS would sum in an order that depends on the number of threads.
        utilities = (metric.score(compared) * shares[columns]).sum(axis=1)
    found = dict(zip(rows.tolist(), utilities.tolist(), strict=True))
    return [found[numbers[text]] for text in hypotheses]


def chrf_scores(compared: Comparison) -> Floats:
    """Return chrF2 without words, as sacreBLEU's `CHRF().sentence_score`.

    Precision and recall are averaged over the orders that both sides have n-grams of.
    Source: Popovic 2015, "chrF: character n-gram F-score for automatic MT evaluation".
    """
    ours, theirs = compared.num_hypothesis_ngrams, compared.num_reference_ngrams
    is_used = (ours > 0) & (theirs > 0)
    num_orders = np.maximum(is_used.sum(axis=0), 1)
    common = np.where(is_used, compared.num_common_ngrams, 0)
    precision = (common / np.where(is_used, ours, 1)).sum(axis=0) / num_orders
    recall = (common / np.where(is_used, theirs, 1)).sum(axis=0) / num_orders
    weighted = CHRF_BETA**2 * precision + recall
    scores: Floats = 100 * (1 + CHRF_BETA**2) * precision * recall
    return scores / np.where(weighted > 0, weighted, 1)


def bleu_scores(compared: Comparison) -> Floats:
    """Return BLEU, as sacreBLEU's `BLEU(effective_order=True).sentence_score`.

    The k-th order without a match has 2^-k matches (smoothing "exp"). Aggregated matches may be
    fractions: an order with less than that counts as one without a match, so that more matches
    never lower the score.
    """
    ours, common = compared.num_hypothesis_ngrams, compared.num_common_ngrams
    logs, smoothed = np.zeros(common.shape[1:]), np.ones(common.shape[1:])
    for total, matches in zip(ours, common, strict=True):
        is_smoothed = (total > 0) & (matches < smoothed / 2)
        smoothed = np.where(is_smoothed, smoothed / 2, smoothed)
        found = np.where(is_smoothed, smoothed, matches) / np.maximum(total, 1)
        logs += np.log(np.where(total > 0, found, 1))
    num_orders = np.maximum((ours > 0).sum(axis=0), 1)
    lengths = np.maximum(ours[0], 1)
    brevity = np.minimum(0, 1 - compared.num_reference_ngrams[0] / lengths)
    has_matches = common.any(axis=0)
    return np.where(has_matches, 100 * np.exp(brevity + logs / num_orders), 0)


def _characters(texts: Iterable[str]) -> list[Sequence[str]]:
    return ["".join(text.split()) for text in texts]


def _words(texts: Iterable[str]) -> list[Sequence[str]]:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenize = Tokenizer13a()
    return [tokenize(text.rstrip()).split() for text in texts]


UTILITIES: dict[str, Utility] = {
    "chrf": Utility(CHRF_ORDER, _characters, chrf_scores),
    "bleu": Utility(BLEU_ORDER, _words, bleu_scores),
}
"""Utilities by the names that `mbr:NAME` of `nmtkit rerank --features` takes."""


@dataclass(frozen=True, eq=False)
class _Counts:
    """The n-grams of texts, of one order: entry i has n-gram i of text i, `counts[i]` times.

    Attributes:
        ngrams: numbers of the n-grams, ascending.
        texts: numbers of the texts, ascending per n-gram.
        counts: 1 or more.
        num_texts: number of texts; some may have no n-grams.
    """

    ngrams: Integers
    texts: Integers
    counts: Integers
    num_texts: int

    def totals(self) -> Floats:
        """Return the number of n-grams of each text."""
        return _sums(self.texts, self.counts, self.num_texts)

    def common_with_average(self, shares: Floats) -> Floats:
        """Return the common n-grams of each text and the average of all texts, by their shares."""
        average = _sums(self.ngrams, self.counts * shares[self.texts], 0)
        matches = np.minimum(self.counts, average[self.ngrams])
        return _sums(self.texts, matches, self.num_texts)

    def common(self, rows: Integers, columns: Integers) -> Floats:
        """Return the common n-grams (rows, columns) of pairs of texts.

        The minimum of two counts is the number of occurrences that both texts have.
        """
        common = np.zeros((len(rows), len(columns)))
        occurrences = self._occurrences()
        order = np.argsort(occurrences)
        occurrences, texts = occurrences[order], np.repeat(self.texts, self.counts)[order]
        num_columns = int(occurrences.max(initial=-1)) + 1
        width = max(1, min(_BLOCK_CELLS // self.num_texts, num_columns))
        for start in range(0, num_columns, width):
            first, end = np.searchsorted(occurrences, (start, start + width))
            block = np.zeros((self.num_texts, width), np.float32)
            block[texts[first:end], occurrences[first:end] - start] = 1
            common += block[rows] @ block[columns].T
        return common

    def _occurrences(self) -> Integers:
        """Return a column for each occurrence of each entry: those of an n-gram are adjacent."""
        largest = np.zeros(int(self.ngrams.max(initial=-1)) + 1, np.int64)
        np.maximum.at(largest, self.ngrams, self.counts)
        starts = np.cumsum(largest) - largest
        before = np.cumsum(self.counts) - self.counts
        ordinals = np.arange(self.counts.sum()) - np.repeat(before, self.counts)
        occurrences: Integers = np.repeat(starts[self.ngrams], self.counts) + ordinals
        return occurrences


def _sums(numbers: Integers, values: NDArray[Any], size: int) -> Floats:
    """Return the sums of the values of each number, for at least `size` numbers from 0."""
    return np.bincount(numbers, values, size).astype(np.float64, copy=False)


def _count_ngrams(texts: Sequence[Sequence[str]], max_order: int) -> Iterator[_Counts]:
    """Yield the n-grams of all texts for each order, from 1."""
    numbers: dict[str, int] = {}
    units = np.array(
        [numbers.setdefault(unit, len(numbers)) for text in texts for unit in text], np.int64
    )
    lengths = np.array([len(text) for text in texts], np.int64)
    text_of, ends = (np.repeat(one, lengths) for one in (np.arange(len(texts)), lengths.cumsum()))
    positions, ngrams = np.arange(len(units)), units
    for order in range(1, max_order + 1):
        if order > 1:
            # An n-gram is the one before it, of order - 1, and one more unit.
            longer = positions + order <= ends[positions]
            positions, shorter = positions[longer], ngrams[longer]
            codes = shorter * len(numbers) + units[positions + order - 1]
            ngrams = np.unique(codes, return_inverse=True)[1]
        keys, counts = np.unique(ngrams * len(texts) + text_of[positions], return_counts=True)
        yield _Counts(keys // len(texts), keys % len(texts), counts, len(texts))
