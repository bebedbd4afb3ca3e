"""Print a table of the effects of label smoothing and averaging, from the runs of `make effects`.

The arguments are folders `smoothing-S-seed-N`, each with run/metrics.jsonl and scores.json.
"""

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """The results of a run: validation perplexity, and BLEU on the test set."""

    smoothing: str
    seed: str
    perplexity: float
    last: float
    mean: float

    @staticmethod
    def read(folder: Path) -> "Outcome":
        """Read the results in the folder of a run."""
        _, smoothing, _, seed = folder.name.split("-")
        records = map(json.loads, (folder / "run" / "metrics.jsonl").read_text().splitlines())
        validations = [record for record in records if record["event"] == "validation"]
        last, mean = map(json.loads, (folder / "scores.json").read_text().splitlines())
        return Outcome(
            smoothing,
            seed,
            validations[-1]["perplexity"],
            last["BLEU"]["score"],
            mean["BLEU"]["score"],
        )


def table(outcomes: list[Outcome]) -> list[str]:
    """Return a Markdown table: a row per run, and the means per label smoothing."""
    lines = [
        "| label smoothing | seed | perplexity, last | BLEU, last | BLEU, mean of 5 |",
        "|---|---|---|---|---|",
    ]
    for smoothing in dict.fromkeys(outcome.smoothing for outcome in outcomes):
        rows = [outcome for outcome in outcomes if outcome.smoothing == smoothing]
        lines += [_row(smoothing, row.seed, [row.perplexity, row.last, row.mean]) for row in rows]
        columns = zip(*((row.perplexity, row.last, row.mean) for row in rows), strict=True)
        lines.append(_row(smoothing, "all", [statistics.fmean(column) for column in columns]))
    return lines


def _row(smoothing: str, seed: str, numbers: list[float]) -> str:
    cells = [smoothing, seed, *(f"{number:.2f}" for number in numbers)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    outcomes = [Outcome.read(Path(argument)) for argument in sys.argv[1:]]
    sys.stdout.write("\n".join(table(outcomes)) + "\n")
