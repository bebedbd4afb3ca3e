from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.schema import Field, TrainRecipe, Value, fields_of, recipe_of
from nmtkit.config.toml import loads
from nmtkit.progress.records import Sample, ValidationRecord
from nmtkit.reporting.page import NOTHING, Cell, Table
from nmtkit.reporting.run_tables import samples, settings, summary, validations
from nmtkit.reporting.runs import Run
from tests.unit.reporting.builders import SIGNATURE, run_of, training, validated, validation

FIELDS = fields_of(TrainRecipe)


def rows(*runs: Run, with_costs: bool = True) -> list[dict[str, Cell]]:
    table = summary(runs, with_costs).table
    assert table is not None
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows]


RESULTS = {
    "run": "a run",
    "updates": "1,000",
    "time": "16m43s",
    "best dev nll": "2.0000 at 200",
    "best BLEU": "30.00 at 300",
    "tokens/s": "1,000",
}


def test_a_run_is_a_row_of_results_and_on_request_of_costs() -> None:
    run = run_of("a run", validated([3.0, 2.0, 2.5], [10.0, 20.0, 30.0]))
    (row,) = rows(run, with_costs=False)
    assert {name: cell.text for name, cell in row.items()} == RESULTS
    (row,) = rows(run)
    costs = {"device-hours": "0.28", "FLOPs": "2.0e+16"}
    assert {name: cell.text for name, cell in row.items()} == RESULTS | costs


def test_columns_that_say_nothing_of_any_run_are_left_out() -> None:
    of_epochs = run_of(settings={"max_epochs": 1})
    skipping = replace(run_of("b"), training=[replace(training(100), skipped_updates=3)])
    plain = [*rows(run_of())[0]]
    assert {*rows(of_epochs, run_of("b"))[1]} - {*plain} == {"epoch"}
    assert {*rows(run_of(), skipping)[0]} - {*plain} == {"skipped"}
    assert rows(run_of(), skipping)[1]["skipped"].text == "3"


def test_unknown_figures_are_left_open() -> None:
    (row,) = rows(replace(run_of(), training=[training(50), training(100)]))
    unknown = {name for name, cell in row.items() if cell is NOTHING}
    assert unknown == {"best dev nll"}


def test_speed_is_all_tokens_divided_by_their_time() -> None:
    slow = replace(training(100), num_source_tokens=30, num_target_tokens=70, tokens_per_second=10)
    fast = replace(
        training(200), num_source_tokens=9000, num_target_tokens=0, tokens_per_second=900
    )
    (row,) = rows(replace(run_of(), training=[slow, fast]))
    assert row["tokens/s"].text == f"{(100 + 9000) / (10 + 10):.0f}"


def test_a_speed_that_was_never_measured_is_left_open() -> None:
    (row,) = rows(replace(run_of(), training=[replace(training(1), tokens_per_second=0.0)]))
    assert row["tokens/s"] is NOTHING


def test_device_hours_count_the_ranks_of_each_record() -> None:
    one = replace(training(100), elapsed_s=3600.0)
    eight = replace(training(200), elapsed_s=5400.0, ranks=8)
    (row,) = rows(replace(run_of(), training=[one, eight]))
    assert row["device-hours"].text == "5.00"


def test_time_and_device_hours_count_every_validation_the_last_one_too() -> None:
    one = replace(training(100), elapsed_s=3600.0)
    eight = replace(training(200), elapsed_s=5400.0, ranks=8)
    validations = [
        replace(record, took_s=seconds)
        for record, seconds in zip(validated([3.0, 2.0], [1.0, 2.0]), (3600, 900), strict=True)
    ]
    (row,) = rows(replace(run_of(), training=[one, eight], validations=validations))
    assert row["time"].text == "2h45m"
    assert row["device-hours"].text == "8.00"


def best_cells(*runs: Run) -> set[tuple[str, str]]:
    return {
        (row["run"].text, name) for row in rows(*runs) for name, cell in row.items() if cell.is_best
    }


def test_the_best_of_several_runs_is_bold() -> None:
    first = run_of("first", validated([3.0, 2.0], [10.0, 20.0]))
    second = run_of("second", validated([3.0, 2.5], [10.0, 25.0]))
    assert best_cells(first, second, run_of("third")) == {
        ("first", "best dev nll"),
        ("second", "best BLEU"),
    }
    assert best_cells(first) == set()


def test_no_run_is_the_best_of_those_in_another_language_or_on_another_text() -> None:
    results = validated([3.0], [10.0])
    first, second = run_of("first", results), run_of("second", validated([2.0], [20.0]))
    for other in (
        replace(second, languages="en-fr", validation_text="fedc"),
        replace(second, validation_text="fedc"),
        replace(second, validation_text=None),
    ):
        assert best_cells(first, other) == set()
        assert ("second", "best BLEU") in best_cells(first, second, replace(other, name="other"))


def test_losses_of_different_vocabularies_are_not_compared() -> None:
    first = run_of("first", validated([3.0], [10.0]))
    second = replace(run_of("second", validated([4.0], [11.0])), codec="another")
    assert best_cells(first, second) == {("second", "best BLEU")}


def test_each_metric_has_a_column_and_the_lowest_error_rate_is_the_best() -> None:
    runs = [
        run_of(name, [replace(validation(100, 3.0), scores=scores, signatures=signatures)])
        for name, scores in (
            ("first", {"ter": 50.0, "bleu": 10.0}),
            ("second", {"ter": 60.0, "bleu": 20.0}),
            ("third", {"bleu": 15.0}),
        )
        for signatures in [dict.fromkeys(scores, "version:1")]
    ]
    found = rows(*runs)
    assert [row["best TER"].text for row in found] == ["50.00 at 100", "60.00 at 100", "-"]
    assert {("first", "best TER"), ("second", "best BLEU")} <= best_cells(*runs)
    assert list(found[0])[3:6] == ["best dev nll", "best BLEU", "best TER"]


def settings_table(*runs: Run) -> Table:
    found = settings(runs).table
    assert found is not None
    return found


def other_value(field: Field) -> Value:
    """Return a value that is not the default, permitted or not."""
    if field.kind is bool:
        return not field.default
    if isinstance(field.default, tuple):
        return ("encoder",)
    if isinstance(field.default, str):
        return field.default + " "
    assert isinstance(field.default, int | float), f"{field.name} is of a new kind"
    return field.default + 1


@given(st.sets(st.sampled_from(list(FIELDS))), st.sets(st.sampled_from(list(FIELDS))))
def test_the_table_of_settings_names_exactly_the_settings_that_differ(
    first: set[str], second: set[str]
) -> None:
    defaults = {name: field.default for name, field in FIELDS.items()}
    runs = [
        run_of(settings={**defaults, **{name: other_value(FIELDS[name]) for name in chosen}})
        for chosen in (set[str](), first, second)
    ]
    differing = [f"{FIELDS[name].section}.{name}" for name in FIELDS if name in first | second]
    if not differing:
        assert settings(runs).sentences == ["all settings are equal"]
        assert settings(runs).table is None
    else:
        assert [row[0].text for row in settings_table(*runs).rows] == differing


def test_a_value_is_written_as_in_toml() -> None:
    recipe = recipe_of(TrainRecipe, {"norm": "pre", "max_updates": 7, "adam_epsilon": 1e-12})
    other = run_of(settings={"max_updates": 9})
    run = run_of(settings={"norm": "pre", "max_updates": 7, "adam_epsilon": 1e-12})
    lines = []
    for name, value, _ in settings_table(run, other).rows:
        section, setting = name.text.split(".")
        lines += [f"[{section}]\n{setting} = {value.text}"]
    merged = "\n".join(dict.fromkeys("\n".join(lines).split("\n")))
    assert loads(merged, TrainRecipe, "table") == recipe


def validations_table(*runs: Run) -> Table:
    found = validations(runs).table
    assert found is not None
    return found


def texts(*runs: Run) -> list[list[str]]:
    return [[cell.text for cell in row] for row in validations_table(*runs).rows]


def test_every_validation_is_a_row_and_the_best_are_bold() -> None:
    run = run_of(validations=validated([3.0, 2.0, 2.5], [10.0, None, 30.0]))
    assert validations_table(run).headers == ["update", "dev nll", "BLEU"]
    assert texts(run) == [
        ["100", "3.0000", "10.00"],
        ["200", "2.0000", "-"],
        ["300", "2.5000", "30.00"],
    ]
    best = {cell.text for row in validations_table(run).rows for cell in row if cell.is_best}
    assert best == {"2.0000", "30.00"}
    assert validations([run]).sentences == ["bold: the best of a run", f"BLEU: {SIGNATURE}"]


def test_several_runs_have_their_columns_and_share_the_rows() -> None:
    first = run_of("first", validated([3.0, 2.0], [None, None]))
    later = [replace(one, update=one.update + 100) for one in validated([5.0, 4.0], [1.0, 2.0])]
    second, third = run_of("second", later), run_of("third")
    found = validations_table(first, second, third)
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


@pytest.mark.parametrize(("best", "best_bleu"), [(0, 1), (57, 58), (99, 99)])
def test_many_validations_are_thinned_to_the_best_and_the_last(best: int, best_bleu: int) -> None:
    losses = [1.0 if index == best else 2.0 for index in range(100)]
    bleus = [9.0 if index == best_bleu else 8.0 for index in range(100)]
    run = run_of(validations=validated(losses, bleus))
    shown = [int(row[0].replace(",", "")) for row in texts(run)]
    assert {100 * (best + 1), 100 * (best_bleu + 1), 10_000} <= set(shown)
    assert 12 <= len(shown) <= 14
    assert shown == sorted(shown)
    assert max(later - earlier for earlier, later in pairwise(shown)) <= 1700
    assert validations([run]).sentences[-1] == f"{len(shown)} of 100 validated updates are shown"


def test_before_the_first_validation_there_is_no_table() -> None:
    section = validations([run_of()])
    assert (section.table, section.sentences) == (None, ["none yet"])


def sampled(record: ValidationRecord, *hypotheses: str, source: str = "un") -> ValidationRecord:
    texts = enumerate(hypotheses, 1)
    return replace(record, samples=[Sample(line, source, "one", text) for line, text in texts])


def test_samples_are_those_of_the_best_validation_that_has_some() -> None:
    first, second, third = validated([3.0, 1.0, 2.0], [30.0, 10.0, 20.0])
    found = [sampled(first, "first"), second, sampled(third, "third")]
    for metric, expected in (("nll", "run at 300"), ("bleu", "run at 100")):
        (section,) = samples([run_of(validations=found, settings={"best_metric": metric})])
        assert section.table is not None
        assert [[cell.text for cell in row[:2]] for row in section.table.rows] == [
            ["1", "source"],
            ["1", "reference"],
            ["1", expected],
        ]
    assert samples([run_of(validations=[first, second])]) == []


def test_the_hypotheses_of_runs_with_the_same_text_follow_each_other() -> None:
    (record,) = validated([3.0], [10.0])
    runs = [
        run_of("a", [sampled(record, "1\x1b", "2")]),
        run_of("b", [sampled(record, "3")]),
        run_of("c", [sampled(record, "4", source="deux")]),
    ]
    (section,) = samples(runs)
    assert section.table is not None
    assert [tuple(cell.text for cell in row) for row in section.table.rows] == [
        *(("1", "source", "deux"), ("1", "reference", "one"), ("1", "c at 100", "4")),
        *(("1", "source", "un"), ("1", "reference", "one")),
        *(("1", "a at 100", r"1\x1b"), ("1", "b at 100", "3")),
        *(("2", "source", "un"), ("2", "reference", "one"), ("2", "a at 100", "2")),
    ]
