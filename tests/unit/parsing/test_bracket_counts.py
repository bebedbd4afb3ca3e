import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmtkit.parsing.bracket_counts import Counts, counts_of, total
from nmtkit.parsing.brackets import compare_lines
from nmtkit.parsing.prm import COLLINS

GOLD = "(S (A (P this)) (B (Q is)))"
NUMBERS = st.integers(0, 1000)


def counted(*parsed: str) -> Counts:
    return total(map(counts_of, compare_lines([GOLD] * len(parsed), parsed, COLLINS)))


def test_gold_against_gold_is_a_hundred() -> None:
    counts = counted(GOLD, GOLD)
    figures = counts.figures()
    assert {name for name, value in figures.items() if value == 100} == {
        *("f1", "recall", "precision", "strict_f1", "complete_match", "no_crossing"),
        *("two_or_less_crossing", "tagging_accuracy"),
    }
    assert (counts.sentences, counts.average_crossing) == (2, 0)


def test_refused_parses_are_missed_by_the_strict_f1_alone() -> None:
    whole, refused = counted(GOLD), counted(GOLD, "(S (A (P that)) (Q is))", "")
    assert (whole.f1, whole.strict_f1) == (100, 100)
    assert (refused.errors, refused.skipped, refused.valid) == (1, 1, 1)
    assert refused.f1 == refused.complete_match == 100
    # 3 of 3 + 3 + 3 gold brackets, and of 3 + 2 + 0.
    assert refused.strict_f1 == pytest.approx(200 * 3 / (9 + 5))


def test_nothing_scored_is_zero() -> None:
    assert {**counted("").figures(), "sentences": 0, "skipped": 0} == Counts().figures()
    assert set(Counts().figures().values()) == {0}


@given(matched=NUMBERS, missed=NUMBERS, wrong=NUMBERS)
def test_f1_is_between_precision_and_recall(matched: int, missed: int, wrong: int) -> None:
    gold, parsed = matched + missed, matched + wrong
    counts = Counts(matched=matched, gold=gold, parsed=parsed, all_gold=gold, all_parsed=parsed)
    low, high = sorted((counts.precision, counts.recall))
    assert low - 1e-9 <= counts.f1 <= high + 1e-9
    assert counts.f1 == pytest.approx(counts.strict_f1)


@given(st.lists(st.lists(NUMBERS, min_size=14, max_size=14), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_totals_add_up_field_by_field(rows: list[list[int]]) -> None:
    assert total(Counts(*row) for row in rows).as_list() == list(map(sum, zip(*rows, strict=True)))
