"""A run stands beside the paper's table 2 with what it came to, counted both ways."""

from dataclasses import replace

from nmtkit.reporting.document import Table
from nmtkit.reporting.paper import TABLE_2
from nmtkit.reporting.runs import Run
from nmtkit.reporting.table2 import table2
from tests.unit.reporting.builders import run_of, validated


def rows(*runs: Run) -> list[list[str]]:
    table = table2(runs).table
    assert isinstance(table, Table)
    return [[cell.text for cell in row] for row in table.rows]


def test_the_paper_s_rows_come_first_as_the_paper_has_them() -> None:
    known = rows()
    assert len(known) == len(TABLE_2)
    assert ["Transformer (base model)", "en-de", "27.30", "3.3e+18", "-"] in known
    assert ["Transformer (big)", "en-fr", "41.80", "2.3e+19", "-"] in known
    assert ["ByteNet", "en-de", "23.75", "-", "-"] in known


def test_a_run_has_its_best_bleu_and_both_costs() -> None:
    run = run_of("mine", validated([3.0, 2.0, 2.5], [10.0, 30.0, 20.0]))
    assert rows(run)[len(TABLE_2) :] == [["mine", "en-de", "30.00", "3.0e+16", "2.0e+16"]]


def test_what_a_run_does_not_know_is_left_open() -> None:
    unknown = replace(run_of("mine"), languages=None, training=[])
    assert rows(unknown)[-1][:3] == ["mine", "-", "-"]
