"""The table of a grid has every scored cell and names the best."""

import json
from pathlib import Path

from examples.wsj.grid import HEADERS, SCORE, table


def write_cell(folder: Path, name: str, f1: float) -> None:
    (folder / name).mkdir(parents=True)
    scores = {"system": "-", "F1": {"score": f1, "recall": f1 - 1, "precision": f1 + 1}}
    (folder / name / SCORE).write_text(json.dumps(scores), "utf-8")


def test_cells_are_sorted_by_settings_and_the_best_is_named(tmp_path: Path) -> None:
    write_cell(tmp_path, "0.3-0.1-0.5", 87.0)
    write_cell(tmp_path, "0.1-0.2-0.5", 88.5)
    write_cell(tmp_path, "0.1-0.1-1.0", 80.0)
    (tmp_path / "data").mkdir()
    (tmp_path / "0.2-0.1-0.5").mkdir()  # still in training
    section = table(tmp_path)
    assert section.table is not None
    assert section.table.headers == HEADERS
    assert [[cell.text for cell in row] for row in section.table.rows] == [
        ["0.1", "0.1", "1.0", "80.00", "79.00", "81.00"],
        ["0.1", "0.2", "0.5", "88.50", "87.50", "89.50"],
        ["0.3", "0.1", "0.5", "87.00", "86.00", "88.00"],
    ]
    marked = [[cell.is_best for cell in row].count(True) for row in section.table.rows]
    assert marked == [0, 1, 0]
    assert section.sentences == [
        "the best one: DROPOUT=0.1 ATTENTION_DROPOUT=0.2 LEARNING_RATE=0.5"
    ]


def test_a_grid_without_scores_says_so(tmp_path: Path) -> None:
    section = table(tmp_path)
    assert section.table is None
    assert section.sentences == ["no cell has been scored yet"]
