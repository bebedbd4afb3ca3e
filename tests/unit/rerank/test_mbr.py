"""Expected utilities equal those of sacreBLEU's sentence scores, and the paper's definition."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmtkit.rerank import mbr
from nmtkit.rerank.mbr import UTILITIES, expected_utilities
from nmtkit.text.lines import read_lines
from tests.shared_data import DATA, needs_data

SACREBLEU: dict[str, CHRF | BLEU] = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}

HYPOTHESES = ["The cat sat on the mat.", "The cat sat on the hat."]
REFERENCES = ["The cat sat on the mat.", "The fat cat sat on the mat.", "A cat sat on a mat."]

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


def brute_force(utility: str, hypothesis: str, references: Sequence[str]) -> float:
    scorer = SACREBLEU[utility]
    return fmean(scorer.sentence_score(hypothesis, [one]).score for one in references)


# ------------------------------------------------------------------------------------ exact


@EVERY
@given(hypotheses=st.lists(TEXTS, max_size=6), references=LISTS)
def test_utilities_are_the_means_of_sentence_scores(
    utility: str, hypotheses: list[str], references: list[str]
) -> None:
    # 1e-9: both compute in float64, in another order.
    expected = [brute_force(utility, one, references) for one in hypotheses]
    found = expected_utilities(utility, hypotheses, references, False)
    assert found == pytest.approx(expected, abs=1e-9)


@EVERY
@given(texts=LISTS)
def test_the_hypotheses_may_be_the_references(utility: str, texts: list[str]) -> None:
    expected = [brute_force(utility, one, texts) for one in texts]
    assert expected_utilities(utility, texts, texts, False) == pytest.approx(expected, abs=1e-9)


@EVERY
@pytest.mark.parametrize("is_aggregated", [False, True])
@given(texts=LISTS, repeats=st.integers(2, 4))
def test_a_text_has_one_utility_and_counts_as_often_as_it_is_there(
    utility: str, is_aggregated: bool, texts: list[str], repeats: int
) -> None:
    once = expected_utilities(utility, texts, texts, is_aggregated)
    more = expected_utilities(utility, texts * repeats, texts * repeats, is_aggregated)
    assert more == pytest.approx(once * repeats, abs=1e-9)
    assert all(len({more[i] for i, one in enumerate(texts) if one == text}) == 1 for text in texts)


@EVERY
def test_a_matrix_that_is_computed_in_many_blocks_is_the_same(
    utility: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = expected_utilities(utility, HYPOTHESES, REFERENCES, False)
    monkeypatch.setattr(mbr, "_BLOCK_CELLS", 1)
    assert expected_utilities(utility, HYPOTHESES, REFERENCES, False) == whole


@EVERY
@pytest.mark.parametrize("is_aggregated", [False, True])
def test_no_hypotheses_have_no_utilities(utility: str, is_aggregated: bool) -> None:
    assert expected_utilities(utility, [], ["a"], is_aggregated) == []


def test_chrf_of_pairs_is_that_of_the_authors_program() -> None:
    """Source: the page of fastChrF, which computes in single precision."""
    found = [expected_utilities("chrf", HYPOTHESES, [one], False) for one in REFERENCES]
    assert found == [
        pytest.approx([100, 79.65373993], abs=1e-5),
        pytest.approx([74.6319046, 57.15287399], abs=1e-5),
        pytest.approx([55.77074432, 50.72182846], abs=1e-5),
    ]


@needs_data
@EVERY
def test_utilities_of_real_systems_are_the_means_of_sentence_scores(utility: str) -> None:
    folder = DATA / "score" / "wmt17-en-de"
    texts = [list(read_lines(path)) for path in sorted((folder / "sys").iterdir())]
    assert len(texts) == 10
    for number in (0, 17, 2000):
        line = [text[number] for text in texts]
        expected = [brute_force(utility, one, line) for one in line]
        assert expected_utilities(utility, line, line, False) == pytest.approx(expected, abs=1e-9)


# ------------------------------------------------------------------------------------ aggregated


def ngrams(units: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(units[i : i + order]) for i in range(len(units) - order + 1))


def average(counters: Sequence[Counter[tuple[str, ...]]]) -> dict[tuple[str, ...], float]:
    keys = {key for counter in counters for key in counter}
    return {key: fmean(counter[key] for counter in counters) for key in keys}


def aggregated_counts(
    hypothesis: Sequence[str], references: Sequence[Sequence[str]], order: int
) -> tuple[float, float, float]:
    """Return the n-grams of the hypothesis, of the average reference, and the common ones."""
    ours = ngrams(hypothesis, order)
    theirs = average([ngrams(one, order) for one in references])
    common = sum(min(count, theirs.get(key, 0)) for key, count in ours.items())
    return sum(ours.values()), sum(theirs.values()), common


def aggregated_chrf(hypothesis: str, references: Sequence[str]) -> float:
    """Compute section 3 of Vamvas and Sennrich 2024 in plain Python."""
    units, others = "".join(hypothesis.split()), ["".join(one.split()) for one in references]
    counts = [aggregated_counts(units, others, order) for order in range(1, 7)]
    used = [one for one in counts if one[0] and one[1]]
    if not used:
        return 0.0
    precision = fmean(common / ours for ours, _, common in used)
    recall = fmean(common / theirs for _, theirs, common in used)
    total = 4 * precision + recall
    return 100 * 5 * precision * recall / total if total else 0.0


def aggregated_bleu(hypothesis: str, references: Sequence[str]) -> float:
    """Compute the definition of `expected_utilities` and `bleu_scores` in plain Python."""
    tokenize = BLEU().tokenizer
    units, *others = [tokenize(one.rstrip()).split() for one in (hypothesis, *references)]
    counts = [aggregated_counts(units, others, order) for order in range(1, 5)]
    if not any(common for _, _, common in counts):
        return 0.0
    smallest, logs = 1.0, []
    for ours, _, common in counts:
        if ours:
            if common < smallest / 2:
                smallest /= 2
                common = smallest
            logs.append(math.log(common / ours))
    brevity = min(0.0, 1 - fmean(map(len, others)) / len(units))
    return 100 * math.exp(brevity + fmean(logs))


AGGREGATED: dict[str, Callable[[str, Sequence[str]], float]] = {
    "chrf": aggregated_chrf,
    "bleu": aggregated_bleu,
}


@EVERY
@given(hypotheses=LISTS, references=LISTS)
def test_aggregated_utilities_equal_the_definition(
    utility: str, hypotheses: list[str], references: list[str]
) -> None:
    expected = [AGGREGATED[utility](one, references) for one in hypotheses]
    found = expected_utilities(utility, hypotheses, references, True)
    assert found == pytest.approx(expected, abs=1e-9)


@EVERY
@given(hypotheses=LISTS, reference=TEXTS, repeats=st.integers(1, 3))
def test_of_one_reference_the_aggregated_utility_is_exact(
    utility: str, hypotheses: list[str], reference: str, repeats: int
) -> None:
    exact = expected_utilities(utility, hypotheses, [reference], False)
    found = expected_utilities(utility, hypotheses, [reference] * repeats, True)
    assert found == pytest.approx(exact, abs=1e-9)


def test_aggregated_chrf_is_that_of_the_authors_program() -> None:
    """Source: the page of fastChrF, which computes in single precision."""
    found = expected_utilities("chrf", HYPOTHESES, REFERENCES, True)
    assert found == pytest.approx([78.56389618, 63.3719368], abs=1e-5)


def test_a_rare_match_does_not_lower_aggregated_bleu() -> None:
    references = ["a b c d e f"] * 9
    without, rare = (
        expected_utilities("bleu", ["a b x d e f"], [*references, other], True)[0]
        for other in ("u v w", "b x d e")
    )
    assert rare > without


@EVERY
@pytest.mark.parametrize("is_aggregated", [False, True])
def test_the_text_that_is_like_the_others_has_the_highest_utility(
    utility: str, is_aggregated: bool
) -> None:
    texts = ["the cat sat on the mat", "a cat sat on the mat", "the cat sat on the hat", "no"]
    found = expected_utilities(utility, texts, texts, is_aggregated)
    assert found.index(max(found)) == 0
    assert found.index(min(found)) == 3
