"""Expected utilities of translations, for minimum Bayes risk (MBR) decoding.

The expected utility of a hypothesis is its mean sentence-level score against references, which are
often the hypotheses themselves: samples of a model. Source: Eikema and Aziz 2020, "Is MAP Decoding
All You Need?".

sacreBLEU counts the n-grams of each text once, by private functions (see `Metric`); all pairs of
texts are compared together. Each occurrence of an n-gram, such as the second "is" of a text, is a
number. The minimum of two counts is the number of occurrences that both texts have.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtkit.evaluation.metric import Metric

Numbers = NDArray[Any]

_BLOCK_CELLS = 2**22
"""Cells of a matrix of occurrences: 16 MiB."""


@dataclass(frozen=True)
class Utility:
    """A metric whose sentence-level score compares n-grams.

    Attributes:
        by_order: returns the n-grams of each order, from what sacreBLEU counts of a text.
        score: returns the scores (H, R) of H hypotheses and R references, from the n-grams of the
            hypotheses (orders, H, 1), those of the references (orders, 1, R), and the matches of
            each pair (orders, H, R).
    """

    by_order: Callable[[Any], Sequence[Mapping[Any, int]]]
    score: Callable[[Numbers, Numbers, Numbers], Numbers]


def expected_utilities(
    utility: str, metric: Metric, texts: Sequence[str], is_aggregated: bool
) -> list[float]:
    """Return the expected utility of each text, against all of them.

    Exact, it is the mean of sacreBLEU's sentence scores. Time and memory grow with the square of
    the number of different texts: 8 bytes per pair and order.

    Aggregated, it is the score of mean statistics: the mean number of matches, and the mean length
    of the references. The time grows with the number of texts. Compare Vamvas and Sennrich 2024,
    "Linear-time Minimum Bayes Risk Decoding with Reference Aggregation", where the counts of the
    references are averaged first, and then matched.

    Args:
        utility: key of `UTILITIES`.
        metric: the metric of this name.
        texts: translations of one source; repeated ones count repeatedly.
        is_aggregated: score mean statistics.
    """
    own = UTILITIES[utility]
    numbers = Counter(texts)
    shares = np.array([*numbers.values()]) / len(texts)
    match = _mean_matches if is_aggregated else _matches
    counted = [own.by_order(_ngrams(metric, text)) for text in numbers]
    totals: list[Numbers] = []
    matches: list[Numbers] = []
    for of_order in zip(*counted, strict=True):
        text_of, occurrences = _occurrences(of_order)
        totals.append(np.bincount(text_of, minlength=len(shares)).astype(np.float64))
        matches.append(match(text_of, occurrences, shares))
    ours = np.array(totals)[:, :, None]
    theirs, weights = ours.swapaxes(1, 2), shares
    if is_aggregated:
        theirs, weights = (theirs * shares).sum(2, keepdims=True), np.ones(1)
    # BLAS would sum in an order that depends on the number of threads.
    utilities = (own.score(ours, theirs, np.array(matches)) * weights).sum(1).tolist()
    found = dict(zip(numbers, utilities, strict=True))
    return [found[text] for text in texts]


def chrf_scores(ours: Numbers, theirs: Numbers, common: Numbers) -> Numbers:
    """Return chrF as sacreBLEU's `CHRF.sentence_score`.

    Precision and recall are averaged over the orders that both sides have n-grams of.
    """
    factor = 4  # the square of beta
    is_used = (ours > 0) & (theirs > 0)
    num_orders = np.maximum(is_used.sum(axis=0), 1)
    precision = (common / np.where(is_used, ours, np.inf)).sum(axis=0) / num_orders
    recall = (common / np.where(is_used, theirs, np.inf)).sum(axis=0) / num_orders
    weighted = factor * precision + recall
    scores: Numbers = 100 * (1 + factor) * precision * recall / np.where(weighted > 0, weighted, 1)
    return scores


def bleu_scores(ours: Numbers, theirs: Numbers, common: Numbers) -> Numbers:
    """Return BLEU as sacreBLEU's `BLEU(effective_order=True).sentence_score`.

    The k-th order without a match has 2^-k matches (smoothing "exp").
    """
    logs, smoothed = np.zeros(common.shape[1:]), np.ones(common.shape[1:])
    for total, matches in zip(ours, common, strict=True):
        is_smoothed = (total > 0) & (matches == 0)
        smoothed = np.where(is_smoothed, smoothed / 2, smoothed)
        found = np.where(is_smoothed, smoothed, matches) / np.maximum(total, 1)
        logs += np.log(np.where(total > 0, found, 1))
    num_orders = np.maximum((ours > 0).sum(axis=0), 1)
    brevity = np.minimum(0, 1 - theirs[0] / np.maximum(ours[0], 1))
    return np.where(common.any(axis=0), 100 * np.exp(brevity + logs / num_orders), 0)


def _ngrams(metric: Metric, text: str) -> Any:
    """Return the n-grams that sacreBLEU counts of a text, in the form of the metric."""
    scorer = metric.line_scorer
    return scorer._extract_reference_info([scorer._preprocess_segment(text)])["ref_ngrams"]


def _words_by_order(ngrams: Counter[tuple[str, ...]]) -> list[dict[Any, int]]:
    orders: list[dict[Any, int]] = [{}, {}, {}, {}]
    for ngram, number in ngrams.items():
        orders[len(ngram) - 1][ngram] = number
    return orders


UTILITIES: dict[str, Utility] = {
    "chrf": Utility(lambda ngrams: ngrams[0], chrf_scores),
    "bleu": Utility(_words_by_order, bleu_scores),
}
"""Utilities by the names of their metrics, which `mbr:NAME` of `--features` takes."""


def _occurrences(ngrams: Sequence[Mapping[Any, int]]) -> tuple[Numbers, Numbers]:
    """Return the text of each occurrence of an n-gram of one order, and its number."""
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    ngram_of = np.array([numbers[ngram] for one in ngrams for ngram in one], np.int64)
    counts = np.array([number for one in ngrams for number in one.values()], np.int64)
    text_of = np.repeat(np.arange(len(ngrams)), [*map(len, ngrams)])
    largest = np.zeros(len(numbers), np.int64)
    np.maximum.at(largest, ngram_of, counts)
    # The numbers of an n-gram's occurrences are adjacent.
    firsts = (largest.cumsum() - largest)[ngram_of] - (counts.cumsum() - counts)
    return np.repeat(text_of, counts), np.repeat(firsts, counts) + np.arange(counts.sum())


def _mean_matches(text_of: Numbers, occurrences: Numbers, shares: Numbers) -> Numbers:
    """Return the mean number of occurrences that each text has in common with all (T, 1)."""
    frequencies = np.bincount(occurrences, shares[text_of])
    return np.bincount(text_of, frequencies[occurrences], len(shares))[:, None]


def _matches(text_of: Numbers, occurrences: Numbers, shares: Numbers) -> Numbers:
    """Return the number of occurrences that each two texts have in common (T, T)."""
    common, size = np.zeros((len(shares), len(shares))), occurrences.max(initial=-1) + 1
    width = max(1, min(_BLOCK_CELLS // len(shares), size))
    for start in range(0, size, width):
        inside = (occurrences >= start) & (occurrences < start + width)
        block = np.zeros((len(shares), width), np.float32)
        block[text_of[inside], occurrences[inside] - start] = 1
        common += block @ block.T
    return common
