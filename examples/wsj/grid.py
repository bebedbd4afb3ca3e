"""A table of parser settings with their scores on the validation set, and the best of them.

    python3 -m examples.wsj.grid FOLDER > grid.md

A cell is a folder in FOLDER such as 0.2-0.1-0.5: dropout, attention dropout and learning rate. It
has `valid.json` when its parser has been trained and scored.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from nmtkit.reporting.page import Cell, Section, Table, markdown

SCORE = "valid.json"
"""In the folder of a cell: the output of `nmtkit score --json` for the validation set."""

CELL = re.compile(r"[\d.]+-[\d.]+-[\d.]+")
HEADERS = ("dropout", "attention dropout", "learning rate", "F1", "recall", "precision")


@dataclass(frozen=True)
class Result:
    """The scores of a cell, from 0 to 100, with its settings as text."""

    settings: tuple[str, ...]
    f1: float
    recall: float
    precision: float


def main() -> int:
    """Print the table of a folder; return the exit code."""
    parser = argparse.ArgumentParser(description="A grid of parsers, and the best of them.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    section = table(parser.parse_args().folder)
    sys.stdout.write("".join(f"{line}\n" for line in markdown([section])))
    return 0


def table(folder: Path) -> Section:
    """Return the scores of the cells in a folder, sorted by settings, and the best cell."""
    results = sorted(read_results(folder), key=lambda result: [*map(float, result.settings)])
    if not results:
        return Section("Grid", None, ["no cell has been scored yet"])
    best = max(results, key=lambda result: result.f1)
    rows = [
        [
            *map(Cell, result.settings),
            Cell(f"{result.f1:.2f}", is_best=result is best),
            Cell(f"{result.recall:.2f}"),
            Cell(f"{result.precision:.2f}"),
        ]
        for result in results
    ]
    dropout, attention_dropout, rate = best.settings
    named = f"DROPOUT={dropout} ATTENTION_DROPOUT={attention_dropout} LEARNING_RATE={rate}"
    return Section("Grid", Table(HEADERS, rows), [f"the best one: {named}"])


def read_results(folder: Path) -> list[Result]:
    """Return the results of all scored cells."""
    results = []
    for path in folder.glob(f"*/{SCORE}"):
        if CELL.fullmatch(path.parent.name):
            scores = json.loads(path.read_text("utf-8"))["F1"]
            settings = tuple(path.parent.name.split("-"))
            results.append(Result(settings, scores["score"], scores["recall"], scores["precision"]))
    return results


if __name__ == "__main__":
    sys.exit(main())
