"""Expected utilities equal means of sacreBLEU's sentence scores, and scores of mean counts."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmtkit.config.metrics import MetricsConfig
from nmtkit.evaluation.metrics import make_metrics
from nmtkit.rerank import mbr
from nmtkit.rerank.mbr import UTILITIES, expected_utilities

SACREBLEU: dict[str, CHRF | BLEU] = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}

METRICS = {name: make_metrics(MetricsConfig(metric=name))[0] for name in UTILITIES}

WORDS = [
    "a",
    "b",
    "ab",
    "cat",
    "cats",
    "1.5",
    "&amp;",
    "-",
    "\u4f60\u597d",
    "e\u0301",
    "\U0001f600",
]
ODD = [
    "",
    " ",
    "\u3000",
    "\t",
    "x",
    "\u597d",
    "\u0301",
    "\u00e9",
    "<skipped>",
    "a" * 30,
    "a\nb",
    "\0",
]
LINES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
TEXTS = LINES | st.sampled_from(ODD) | st.text(max_size=12)
LISTS = st.lists(TEXTS, min_size=1, max_size=6)
EVERY = pytest.mark.parametrize("utility", [*UTILITIES])


def utilities(utility: str, texts: Sequence[str], is_aggregated: bool) -> list[float]:
    return expected_utilities(utility, METRICS[utility], texts, is_aggregated)


def by_pairs(utility: str, texts: Sequence[str]) -> list[float]:
    """Return the mean of sacreBLEU's sentence scores of each text."""
    scorer = SACREBLEU[utility]
    return [fmean(scorer.sentence_score(one, [other]).score for other in texts) for one in texts]


def by_mean_statistics(utility: str, texts: Sequence[str]) -> list[float]:
    """Return the score of the mean of counts that plain Python makes of pairs."""
    return [SCORES[utility]([_counts(utility, one, other) for other in texts]) for one in texts]


def _counts(utility: str, hypothesis: str, reference: str) -> list[tuple[int, int, int]]:
    """Return per order the n-grams of the hypothesis, of the reference, and the common ones."""
    units, others = (UNITS[utility](text) for text in (hypothesis, reference))
    found = []
    for order in range(1, 7 if utility == "chrf" else 5):
        ours, theirs = (
            Counter(tuple(one[i : i + order]) for i in range(len(one) - order + 1))
            for one in (units, others)
        )
        found.append((ours.total(), theirs.total(), (ours & theirs).total()))
    return found


def _means(counts: list[list[tuple[int, int, int]]]) -> list[list[float]]:
    """Return the three means of each order."""
    return [
        [fmean(column) for column in zip(*one, strict=True)] for one in zip(*counts, strict=True)
    ]


def chrf_of_means(counts: list[list[tuple[int, int, int]]]) -> float:
    used = [one for one in _means(counts) if one[0] and one[1]]
    if not used:
        return 0.0
    precision = fmean(common / ours for ours, _, common in used)
    recall = fmean(common / theirs for _, theirs, common in used)
    total = 4 * precision + recall
    return 100 * 5 * precision * recall / total if total else 0.0


def bleu_of_means(counts: list[list[tuple[int, int, int]]]) -> float:
    orders = [one for one in _means(counts) if one[0]]
    if not orders:
        return 0.0
    # Each text is among its references, so every order has matches: nothing is smoothed.
    logs = [math.log(common / ours) for ours, _, common in orders]
    return 100 * math.exp(min(0.0, 1 - orders[0][1] / orders[0][0]) + fmean(logs))


UNITS: dict[str, Callable[[str], Sequence[str]]] = {
    "chrf": lambda text: "".join(text.split()),
    "bleu": lambda text: BLEU().tokenizer(text.rstrip()).split(),
}
SCORES = {"chrf": chrf_of_means, "bleu": bleu_of_means}


@EVERY
@given(texts=LISTS)
def test_exact_utilities_are_the_means_of_sentence_scores(utility: str, texts: list[str]) -> None:
    # 1e-9: both compute in float64, in another order.
    expected = by_pairs(utility, texts)
    assert utilities(utility, texts, False) == pytest.approx(expected, abs=1e-9)


@EVERY
@given(texts=LISTS)
def test_aggregated_utilities_are_the_scores_of_mean_statistics(
    utility: str, texts: list[str]
) -> None:
    expected = by_mean_statistics(utility, texts)
    assert utilities(utility, texts, True) == pytest.approx(expected, abs=1e-9)


@EVERY
@pytest.mark.parametrize("is_aggregated", [False, True])
@given(texts=LISTS, repeats=st.integers(2, 4))
def test_a_text_has_one_utility_and_counts_as_often_as_it_is_there(
    utility: str, is_aggregated: bool, texts: list[str], repeats: int
) -> None:
    once = utilities(utility, texts, is_aggregated)
    more = utilities(utility, texts * repeats, is_aggregated)
    assert more == pytest.approx(once * repeats, abs=1e-9)
    assert all(len({more[i] for i, one in enumerate(texts) if one == text}) == 1 for text in texts)


@EVERY
def test_a_matrix_that_is_computed_in_many_blocks_is_the_same(
    utility: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["The cat sat on the mat.", "The fat cat sat on the mat.", "A cat sat on a mat."]
    whole = utilities(utility, texts, False)
    monkeypatch.setattr(mbr, "_BLOCK_CELLS", 1)
    assert utilities(utility, texts, False) == whole
