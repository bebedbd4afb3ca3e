"""EVALB's figures; its report on its own sample and on the test data, to the letter."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.metrics import MetricsConfig
from nmtkit.errors import DataError
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.parsing.evalb.comparison import Counts, compare_lines
from nmtkit.parsing.evalb.metric import evalb_report, total
from nmtkit.parsing.evalb.parameters import COLLINS
from nmtkit.progress.counting import SILENT
from tests.shared_data import DATA, needs_data

TREE = "(S (A (P this)) (B (Q is)))"
NUMBERS = st.integers(0, 1000)
CASES = DATA / "evalb"
# EVALB is in the public domain; its sample and what it prints are part of it.
THIS_IS_A_TEST = " (A (P this)) (B (Q is) (A (R a) (T test)))"
GOLD = [f"(S{THIS_IS_A_TEST})"] * 20 + [
    "(S (A-SBJ-1 (P this)) (B-WHATEVER (Q is) (A (R a) (T test))))",
    f"(S{THIS_IS_A_TEST * 11})",
    f"(S{THIS_IS_A_TEST} (-NONE- *))",
    f"(S{THIS_IS_A_TEST} (: *))",
]
PARSED = [
    "(S (A (P this)) (B (Q is) (A (R a) (T test))))",
    "(S (A (P this)) (B (Q is) (C (R a) (T test))))",
    "(S (A (P this)) (B (Q is) (A (R a) (U test))))",
    "(S (C (P this)) (B (Q is) (A (R a) (U test))))",
    "(S (A (P this)) (B (Q is) (R a) (A (T test))))",
    "(S (A (P this) (Q is)) (A (R a) (T test)))",
    "(S (P this) (Q is) (R a) (T test))",
    "(P this) (Q is) (R a) (T test)",
    "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))",
    "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))",
    "",
    "(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))",
    "(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))",
    "",
    "(TOP (S (A (P this)) (B (Q is) (A (R a) (T test)))))",
    "(S (A (P this)) (NONE *) (B (Q is) (A (R a) (T test))))",
    "(S (A (P this)) (S (NONE abc) (A (NONE *))) (B (Q is) (A (R a) (T test))))",
    "(S (A (P this)) (B (Q is) (A (R a) (TT test))))",
    "(S (A (P This)) (B (Q is) (A (R a) (T test))))",
    "(S (A (P That)) (B (Q is) (A (R a) (T test))))",
    "(S (A (P this)) (B (Q is) (A (R a) (T test))))",
    f"(S{THIS_IS_A_TEST * 11})",
    "(S (A (P this)) (B (Q is) (A (R a) (T test))) (-NONE- *))",
    "(S (A (P this)) (B (Q is) (A (R a) (T test))) (: *))",
]
REPORT = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
   1    4    0  100.00 100.00     4      4    4      0      4     4   100.00
   2    4    0   75.00  75.00     3      4    4      0      4     4   100.00
   3    4    0  100.00 100.00     4      4    4      0      4     3    75.00
   4    4    0   75.00  75.00     3      4    4      0      4     3    75.00
   5    4    0   75.00  75.00     3      4    4      0      4     4   100.00
   6    4    0   50.00  66.67     2      4    3      1      4     4   100.00
   7    4    0   25.00 100.00     1      4    1      0      4     4   100.00
   8    4    0    0.00   0.00     0      4    0      0      4     4   100.00
   9    4    0  100.00  80.00     4      4    5      0      4     4   100.00
  10    4    0  100.00  50.00     4      4    8      0      4     4   100.00
  11    4    2    0.00   0.00     0      0    0      0      0     0     0.00
  12    4    1    0.00   0.00     0      0    0      0      0     0     0.00
  13    4    1    0.00   0.00     0      0    0      0      0     0     0.00
  14    4    2    0.00   0.00     0      0    0      0      0     0     0.00
  15    4    0  100.00 100.00     4      4    4      0      4     4   100.00
  16    4    1    0.00   0.00     0      0    0      0      0     0     0.00
  17    4    1    0.00   0.00     0      0    0      0      0     0     0.00
  18    4    0  100.00 100.00     4      4    4      0      4     3    75.00
  19    4    1    0.00   0.00     0      0    0      0      0     0     0.00
  20    4    1    0.00   0.00     0      0    0      0      0     0     0.00
  21    4    0  100.00 100.00     4      4    4      0      4     4   100.00
  22   44    0  100.00 100.00    34     34   34      0     44    44   100.00
  23    4    0  100.00 100.00     4      4    4      0      4     4   100.00
  24    5    0  100.00 100.00     4      4    4      0      4     4   100.00
============================================================================
                 87.23  90.11     82    94    91      1    104   101    97.12
=== Summary ===

-- All --
Number of sentence        =     24
Number of Error sentence  =      6
Number of Skip  sentence  =      2
Number of Valid sentence  =     16
Bracketing Recall         =  87.23
Bracketing Precision      =  90.11
Bracketing FMeasure       =  88.65
Complete match            =  50.00
Average crossing          =   0.06
No crossing               =  93.75
2 or less crossing        = 100.00
Tagging accuracy          =  97.12

-- len<=40 --
Number of sentence        =     23
Number of Error sentence  =      6
Number of Skip  sentence  =      2
Number of Valid sentence  =     15
Bracketing Recall         =  80.00
Bracketing Precision      =  84.21
Bracketing FMeasure       =  82.05
Complete match            =  46.67
Average crossing          =   0.07
No crossing               =  93.33
2 or less crossing        = 100.00
Tagging accuracy          =  95.00
"""


def report(gold: list[str], parsed: list[str], prm: str) -> tuple[str, str]:
    """Return what would be on standard output, and on standard error without the signature."""
    texts = Texts([Text("parses", parsed)], [Text("gold", gold)])
    lines: list[str] = []
    problems: list[str] = []
    stop = ""
    try:
        for part in evalb_report(MetricsConfig(metric="brackets", prm=prm))(texts, False, SILENT):
            lines += part.lines
            problems += part.remarks
        assert problems.pop().startswith("F1: ")
    except DataError as error:
        stop = str(error)
    return "".join(f"{line}\n" for line in lines), "".join(f"{line}\n" for line in problems) + stop


def test_the_sample_of_evalb_is_reported_as_evalb_reports_it() -> None:
    printed_report, problems = report(GOLD, PARSED, "")
    assert printed_report == REPORT
    assert problems.split("\n")[:2] == ["12 : Words unmatch (is|was)", "13 : Length unmatch (4|5)"]


@needs_data
@pytest.mark.parametrize("printed", sorted(CASES.glob("*/*.out")), ids=lambda path: str(path)[-40:])
def test_cases_are_reported_as_evalb_reports_them(printed: Path) -> None:
    own, shared = printed.with_suffix(".prm"), CASES / "prm" / f"{printed.stem}.prm"
    gold, parsed = (
        (printed.parent / name).read_text("utf-8").removesuffix("\n").split("\n")
        for name in ("gold.gld", "test.tst")
    )
    printed_report, problems = report(gold, parsed, str(own if own.exists() else shared))
    assert printed_report == printed.read_text("utf-8")
    errors = printed.with_suffix(".err")
    expected = errors.read_text("utf-8") if errors.exists() else ""
    if "too-many-errors" in str(printed) and printed.stem == "COLLINS":
        *passed, last = expected.removesuffix("\n").split("\n")
        expected = "".join(f"{line}\n" for line in passed)
        assert last == "15 : Words unmatch (a|x)"
        assert "line 15 of the parses: Words unmatch (a|x); that makes 12 errors" in problems
        problems = problems[: len(expected)]
    assert problems == expected


def test_a_refused_sentence_as_json_has_problems() -> None:
    texts = Texts([Text("parses", PARSED[5::6][:2])], [Text("gold", GOLD[:2])])
    _, *parts = evalb_report(MetricsConfig(metric="brackets"))(texts, True, SILENT)
    scored, refused = (json.loads(line) for part in parts for line in part.lines)
    assert (scored["status"], scored["recall"], scored["crossing"]) == (0, 50, 1)
    assert (refused["status"], refused["problems"]) == (1, ["Words unmatch (is|was)"])


def counted(*parsed: str) -> Counts:
    found = compare_lines([TREE] * len(parsed), parsed, COLLINS)
    return total(one.for_sums() for one in found)


def test_gold_against_gold_is_a_hundred() -> None:
    figures = counted(TREE, TREE).figures()
    assert {name for name, value in figures.items() if value == 100} == {
        *("f1", "recall", "precision", "strict_f1", "complete_match", "no_crossing"),
        *("two_or_less_crossing", "tagging_accuracy"),
    }
    assert (figures["sentences"], figures["average_crossing"]) == (2, 0)


def test_only_the_strict_f1_counts_refused_parses() -> None:
    whole, refused = counted(TREE), counted(TREE, "(S (A (P that)) (Q is))", "")
    assert (whole.f1, whole.strict_f1) == (100, 100)
    assert (refused.errors, refused.skipped, refused.valid) == (1, 1, 1)
    assert refused.f1 == refused.figures()["complete_match"] == 100
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
def test_totals_add_up_field_by_field(rows: list[list[int]]) -> None:
    assert total(Counts(*row) for row in rows) == Counts(*map(sum, zip(*rows, strict=True)))
