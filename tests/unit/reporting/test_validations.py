from dataclasses import replace
from itertools import pairwise

import pytest

from nmtkit.reporting.document import NOTHING, Table
from nmtkit.reporting.runs import Run
from nmtkit.reporting.validations import validations
from tests.unit.reporting.builders import SIGNATURE, run_of, validated


def table(*runs: Run) -> Table:
    found = validations(runs).table
    assert found is not None
    return found


def texts(*runs: Run) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table(*runs).rows]


def test_every_validation_is_a_row_and_the_best_stand_out() -> None:
    run = run_of(validations=validated([3.0, 2.0, 2.5], [10.0, None, 30.0]))
    assert table(run).headers == ["update", "dev nll", "BLEU"]
    assert texts(run) == [
        ["100", "3.0000", "10.00"],
        ["200", "2.0000", "-"],
        ["300", "2.5000", "30.00"],
    ]
    best = {cell.text for row in table(run).rows for cell in row if cell.is_best}
    assert best == {"2.0000", "30.00"}
    assert validations([run]).sentences == ["bold: the best of a run", f"BLEU: {SIGNATURE}"]


def test_bleu_has_no_column_where_there_is_none() -> None:
    assert table(run_of(validations=validated([3.0], [None]))).headers == ["update", "dev nll"]


def test_several_runs_have_columns_of_their_own_and_share_the_rows() -> None:
    first = run_of("first", validated([3.0, 2.0], [None, None]))
    later = [replace(one, update=one.update + 100) for one in validated([5.0, 4.0], [1.0, 2.0])]
    second, third = run_of("second", later), run_of("third")
    found = table(first, second, third)
    assert found.headers == [
        "update",
        "first: dev nll",
        "second: dev nll",
        "second: BLEU",
        "third: dev nll",
    ]
    assert texts(first, second, third) == [
        ["100", "3.0000", "-", "-", "-"],
        ["200", "2.0000", "5.0000", "1.00", "-"],
        ["300", "-", "4.0000", "2.00", "-"],
    ]
    assert all(row[-1] is NOTHING for row in found.rows)


@pytest.mark.parametrize(("best", "best_bleu"), [(0, 1), (36, 3), (57, 58), (99, 99), (50, 50)])
def test_many_validations_are_thinned_but_the_best_and_the_last_stay(
    best: int, best_bleu: int
) -> None:
    losses = [1.0 if index == best else 2.0 for index in range(100)]
    bleus = [9.0 if index == best_bleu else 8.0 for index in range(100)]
    run = run_of(validations=validated(losses, bleus))
    shown = [int(row[0].replace(",", "")) for row in texts(run)]
    assert {100 * (best + 1), 100 * (best_bleu + 1), 10_000} <= set(shown)
    assert 12 <= len(shown) <= 14
    assert shown == sorted(shown)
    assert max(later - earlier for earlier, later in pairwise(shown)) <= 1700
    assert validations([run]).sentences[-1] == f"{len(shown)} of 100 validated updates are shown"


def test_rows_that_several_runs_have_are_preferred() -> None:
    often = run_of("often", validated([4.0] * 120, [None] * 120))
    seldom = run_of("seldom", [one for one in often.validations if one.update % 500 == 0])
    shown = [int(row[0].replace(",", "")) for row in texts(often, seldom)]
    assert {update for update in shown if update % 500} == {100}  # the first of equal ones


def test_before_the_first_validation_there_is_no_table() -> None:
    section = validations([run_of()])
    assert (section.table, section.sentences) == (None, ["none yet"])


def test_each_metric_has_its_column_and_signature() -> None:
    scores = [{"ter": 60.0, "bleu": 20.0}, {"ter": 50.0, "bleu": 10.0}]
    run = run_of(
        validations=[
            replace(one, scores=found, signatures={"ter": "tok:tercom"})
            for one, found in zip(validated([3.0, 2.0], [None, None]), scores, strict=True)
        ]
    )
    assert table(run).headers == ["update", "dev nll", "BLEU", "TER"]
    assert texts(run) == [["100", "3.0000", "20.00", "60.00"], ["200", "2.0000", "10.00", "50.00"]]
    best = {cell.text for row in table(run).rows for cell in row if cell.is_best}
    assert best == {"2.0000", "20.00", "50.00"}
    assert validations([run]).sentences == ["bold: the best of a run", "TER: tok:tercom"]
