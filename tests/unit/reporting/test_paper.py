"""Runs are rows of the paper's table 2; models have the parameters of its table 3."""

from dataclasses import replace

import pytest

from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe, Values
from nmtkit.config.toml import build
from nmtkit.model.cost import count_parameters
from nmtkit.reporting.page import Table
from nmtkit.reporting.paper import TABLE_2, PaperParameters, table2
from nmtkit.reporting.runs import Run
from tests.unit.reporting.builders import run_of, validated


def rows(*runs: Run) -> list[list[str]]:
    table = table2(runs).table
    assert isinstance(table, Table)
    return [[cell.text for cell in row] for row in table.rows]


def test_the_paper_s_rows_come_first_and_unchanged() -> None:
    known = rows()
    assert len(known) == len(TABLE_2)
    assert ["Transformer (base model)", "en-de", "27.30", "3.3e+18"] in known
    assert ["Transformer (big)", "en-fr", "41.80", "2.3e+19"] in known
    assert ["ByteNet", "en-de", "23.75", "-"] in known


def test_a_run_has_its_best_bleu_and_its_cost() -> None:
    run = run_of("mine", validated([3.0, 2.0, 2.5], [10.0, 30.0, 20.0]))
    assert rows(run)[len(TABLE_2) :] == [["mine", "en-de", "30.00", "2.0e+16"]]


def test_unknown_figures_of_a_run_are_left_open() -> None:
    unknown = replace(run_of("mine"), languages=None, training=[])
    assert rows(unknown)[-1][:3] == ["mine", "-", "-"]


def parameters_of(values: Values, vocab_size: int = 37_000) -> tuple[int, PaperParameters]:
    """Return a model's number of parameters, and the paper's."""
    model = build(TrainRecipe, values).model
    total = count_parameters(model, vocab_size, vocab_size, is_shared=True).total
    return total, PaperParameters.of(model, total, vocab_size)


def of_preset(name: str) -> PaperParameters:
    return parameters_of(PRESETS[name])[1]


@pytest.mark.parametrize("preset", ["base", "table3-A1", "table3-C5", "big"])
def test_the_named_vocabulary_size_gives_the_paper_s_parameters(
    preset: str,
) -> None:
    found = of_preset(preset)
    assert found.vocab_size is not None
    total, again = parameters_of(PRESETS[preset], found.vocab_size)
    assert again == found
    assert total / 1e6 == pytest.approx(found.millions, abs=0.001)


def test_dropout_does_not_change_the_row_of_table_3() -> None:
    assert of_preset("big-en-fr").millions == 213
    _, found = parameters_of({**PRESETS["table3-C4"], "attention_dropout": 0.1})
    assert found.millions == 28


def test_the_row_of_learned_positions_has_no_figure() -> None:
    assert of_preset("table3-E") == PaperParameters(None, None)
    assert of_preset("table3-A1").millions == 65


def test_a_model_outside_table_3_has_no_figure() -> None:
    for found in (of_preset("small"), parameters_of({"norm": "pre"})[1]):
        assert found == PaperParameters(None, None)
        assert str(found) == "table 3 has no figure for this model"
