from dataclasses import replace

from nmtkit.reporting.document import NOTHING, Cell
from nmtkit.reporting.runs import Run
from nmtkit.reporting.summary import summary
from tests.unit.reporting.builders import run_of, training, validated, validation


def rows(*runs: Run) -> list[dict[str, Cell]]:
    table = summary(runs).table
    assert table is not None
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows]


def test_a_run_is_a_row_of_what_it_came_to() -> None:
    run = run_of("a run", validated([3.0, 2.0, 2.5], [10.0, 20.0, 30.0]))
    (row,) = rows(run)
    assert {name: cell.text for name, cell in row.items()} == {
        "run": "a run",
        "updates": "1,000",
        "epoch": "1",
        "time": "16m40s",
        "best dev nll": "2.0000 at 200",
        "perplexity": "7.39",
        "best BLEU": "30.00 at 300",
        "tokens/s": "1,000",
        "skipped": "0",
        "device-hours": "0.28",
        "FLOPs": "2.0e+16",
        "FLOPs by time": "3.0e+16",
    }


def test_what_is_not_known_is_left_open() -> None:
    untold = replace(training(100), operations=None, paper_operations=None)
    (row,) = rows(replace(run_of(), training=[training(50), untold]))
    unknown = {name for name, cell in row.items() if cell is NOTHING}
    assert unknown == {"best dev nll", "perplexity", "FLOPs", "FLOPs by time"}


def test_speed_is_all_tokens_by_all_the_time_that_they_took() -> None:
    slow = replace(training(100), num_source_tokens=30, num_target_tokens=70, tokens_per_second=10)
    fast = replace(
        training(200), num_source_tokens=9000, num_target_tokens=0, tokens_per_second=900
    )
    (row,) = rows(replace(run_of(), training=[slow, fast]))
    assert row["tokens/s"].text == f"{(100 + 9000) / (10 + 10):.0f}"


def test_a_speed_that_was_never_measured_is_left_open() -> None:
    (row,) = rows(replace(run_of(), training=[replace(training(1), tokens_per_second=0.0)]))
    assert row["tokens/s"] is NOTHING


def test_hours_count_for_each_process_while_there_were_so_many() -> None:
    one = replace(training(100), elapsed_s=3600.0)
    eight = replace(training(200), elapsed_s=5400.0, ranks=8)
    (row,) = rows(replace(run_of(), training=[one, eight]))
    assert row["device-hours"].text == "5.00"


def best_cells(*runs: Run) -> set[tuple[str, str]]:
    return {
        (row["run"].text, name) for row in rows(*runs) for name, cell in row.items() if cell.is_best
    }


def test_the_best_of_several_runs_stands_out() -> None:
    first = run_of("first", validated([3.0, 2.0], [10.0, 20.0]))
    second = run_of("second", validated([3.0, 2.5], [10.0, 25.0]))
    assert best_cells(first, second, run_of("third")) == {
        ("first", "best dev nll"),
        ("first", "perplexity"),
        ("second", "best BLEU"),
    }
    assert best_cells(first) == set()


def test_what_stands_out_is_explained() -> None:
    assert summary([run_of("a"), run_of("b")]).sentences[0] == "bold: the best of the runs"
    assert not any("bold" in sentence for sentence in summary([run_of()]).sentences)


def test_losses_of_different_vocabularies_do_not_compete() -> None:
    first = run_of("first", validated([3.0], [10.0]))
    second = replace(run_of("second", validated([4.0], [11.0])), codec="another")
    assert best_cells(first, second) == {("second", "best BLEU")}


def test_each_metric_has_a_column_and_the_lowest_error_rate_is_the_best() -> None:
    runs = [
        run_of(name, [replace(validation(100, 3.0), scores=scores)])
        for name, scores in (
            ("first", {"ter": 50.0, "bleu": 10.0}),
            ("second", {"ter": 60.0, "bleu": 20.0}),
            ("third", {"bleu": 15.0}),
        )
    ]
    found = rows(*runs)
    assert [row["best TER"].text for row in found] == ["50.00 at 100", "60.00 at 100", "-"]
    assert {("first", "best TER"), ("second", "best BLEU")} <= best_cells(*runs)
    assert list(found[0])[4:8] == ["best dev nll", "perplexity", "best BLEU", "best TER"]
