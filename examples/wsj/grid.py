"""What a parser's settings came to on the validation set: one table, and the best of them.

    python3 -m examples.wsj.grid FOLDER > grid.md

In FOLDER, a folder such as 0.2-0.1-0.5 is a cell: its dropout, attention dropout and learning rate,
and in it `valid.json` once it has been trained and its parses have been scored.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from nmtkit.reporting.document import Cell, Section, Table, markdown

SCORE = "valid.json"
"""In the folder of a cell: what `nmtkit score --json` told of the validation set."""

CELL = re.compile(r"[\d.]+-[\d.]+-[\d.]+")
HEADERS = ("dropout", "attention dropout", "learning rate", "F1", "recall", "precision")


@dataclass(frozen=True)
class Result:
    """What one cell came to: its settings as they were given, and scores of 0 to 100."""

    settings: tuple[str, ...]
    f1: float
    recall: float
    precision: float


def main() -> int:
    """Read the command line, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="A grid of parsers, and the best of them.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    section = table(parser.parse_args().folder)
    sys.stdout.write("".join(f"{line}\n" for line in markdown([section])))
    return 0


def table(folder: Path) -> Section:
    """Return the scores of the cells in a folder, by their settings; and which is the best."""
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
    """Return what the cells that have been scored came to."""
    results = []
    for path in folder.glob(f"*/{SCORE}"):
        if CELL.fullmatch(path.parent.name):
            scores = json.loads(path.read_text("utf-8"))["F1"]
            settings = tuple(path.parent.name.split("-"))
            results.append(Result(settings, scores["score"], scores["recall"], scores["precision"]))
    return results


if __name__ == "__main__":
    sys.exit(main())
