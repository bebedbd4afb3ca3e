"""Table 3 of "Attention Is All You Need": recipes of its rows, and the table of results.

    python3 -m examples.wmt14.table3 recipe A1 --scale paper > A1/recipe.toml
    python3 -m examples.wmt14.table3 table FOLDER --scale paper > table3.md

A row is evaluated as in the paper: development set, last checkpoint without averaging, beam 4.
FOLDER has a folder per row with its `run`, and `score.json` when it has been translated and scored.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nmtkit.config.presets import PRESET_OF_ROW, PRESETS
from nmtkit.config.schema import TrainRecipe, Value, values_of
from nmtkit.config.toml import build, dumps
from nmtkit.errors import DamagedError, NmtkitError
from nmtkit.reporting.page import NOTHING, Cell, Section, Table, markdown
from nmtkit.reporting.paper import TABLE_3
from nmtkit.reporting.runs import read_runs

SCALES = ("paper", "tiny")

# A row is translated once, after training, and nothing is averaged.
EVALUATED_LATER: Mapping[str, Value] = {"keep": 1, "validate_metrics": "none"}

# All widths have the same divisor and the rest is unchanged, so each row differs from base as in
# the paper.
TINY_WIDTH, TINY_UPDATES = 8, 500
WIDTHS = ("model_size", "feed_forward_size", "key_size", "value_size")
# A higher peak rate than the paper's 0.0007, because training is so short.
TINY: Mapping[str, Value] = {
    "update_tokens": 1000,
    "max_tokens": 1000,
    "warmup_updates": 100,
    "learning_rate_scale": 0.16,
    "save_every": 200,
    "validate_every": 200,
}

RUN, SCORE = "run", "score.json"
"""In the folder of a row: the run, and the output of `nmtkit score`."""

TITLES = {"E": "E: learned positions"}
HEADERS = (
    *("row", "N", "d_model", "d_ff", "h", "d_k", "d_v", "P_drop", "e_ls", "updates"),
    *("PPL paper", "PPL", "BLEU paper", "BLEU", "sacreBLEU", "params paper", "params"),
)
NOTES = {
    "paper": (
        "newstest2013, the last checkpoint, beam 4, length penalty 0.6",
        "PPL: per subword of this vocabulary, not the paper's, on the pairs that filters keep",
    ),
    "tiny": (
        f"tiny: 1/{TINY_WIDTH} of the widths, 1/{TINY_UPDATES} of the updates, 1/25 of their "
        "tokens, another corpus: differences between rows are noise, not comparable with the "
        "paper's",
    ),
}
COMMON_NOTES = (
    "empty: as in base; -: not there yet",
    "BLEU: tokenised, compounds split, as the paper's; sacreBLEU: of the raw text",
    "params: in millions, counted; the paper's need about 41,000 entries in base's rows and 36,000 "
    "in big, so no vocabulary gives all",
)


def main() -> int:
    """Write the recipe or the table that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(description="Table 3 of the paper: recipes, and the table.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("recipe", help="write the recipe of a row")
    one.add_argument("row", choices=PRESET_OF_ROW, metavar="ROW", help=", ".join(PRESET_OF_ROW))
    all_rows = commands.add_parser("table", help="write the table with the rows that have scores")
    all_rows.add_argument("folder", type=Path, metavar="FOLDER")
    for command in (one, all_rows):
        command.add_argument("--scale", choices=SCALES, required=True)
    arguments = parser.parse_args()
    try:
        if arguments.command == "recipe":
            sys.stdout.write(dumps(recipe(arguments.row, arguments.scale)))
        else:
            section = table(arguments.folder, arguments.scale)
            sys.stdout.write("".join(f"{line}\n" for line in markdown([section])))
    except NmtkitError as error:
        sys.stderr.write(f"table3: error: {error}\n")
        return error.exit_code
    return 0


def recipe(row: str, scale: str) -> TrainRecipe:
    """Return the recipe of a row of table 3 at a scale."""
    values = values_of(build(TrainRecipe, PRESETS[PRESET_OF_ROW[row]], EVALUATED_LATER))
    if scale == "paper":
        return build(TrainRecipe, values, {"max_tokens": "auto"})
    divided = {name: _divided(values[name], TINY_WIDTH) for name in WIDTHS}
    updates = _divided(values["max_updates"], TINY_UPDATES)
    return build(TrainRecipe, values, TINY, divided, {"max_updates": updates})


def table(folder: Path, scale: str) -> Section:
    """Return table 3 with the results of the rows in a folder; missing results are left open.

    Raises:
        NmtkitError: a run or a score cannot be read.
    """
    is_there = {row: (folder / row / SCORE).is_file() for row in TABLE_3}
    base = _settings(recipe("base", scale))
    rows = []
    for row in TABLE_3:
        settings = _settings(recipe(row, scale))
        shown = [
            "" if row != "base" and settings[name] == base[name] else settings[name]
            for name in base
        ]
        results = _results(folder / row) if is_there[row] else [NOTHING] * 4
        rows.append(
            [Cell(TITLES.get(row, row)), *map(Cell, shown), *_next_to_the_paper(row, results)]
        )
    missing = [row for row in TABLE_3 if not is_there[row]]
    notes = [*NOTES[scale], *COMMON_NOTES]
    notes += [f"not there yet: {', '.join(missing)}"] if missing else []
    return Section("Table 3", Table(HEADERS, rows), notes)


def _settings(recipe: TrainRecipe) -> dict[str, str]:
    """Return the settings in the paper's table of a model, by column."""
    model, training = recipe.model, recipe.training
    key_size, value_size = model.head_sizes
    return {
        "N": f"{model.encoder_layers}",
        "d_model": f"{model.model_size}",
        "d_ff": f"{model.feed_forward_size}",
        "h": f"{model.heads}",
        "d_k": f"{key_size}",
        "d_v": f"{value_size}",
        "P_drop": f"{model.dropout}",
        "e_ls": f"{training.label_smoothing}",
        "updates": f"{training.max_updates:,}",
    }


def _results(folder: Path) -> list[Cell]:
    """Return perplexity, both BLEU scores and parameters of a scored row."""
    (run,) = read_runs([folder / RUN])
    try:
        scores = json.loads((folder / SCORE).read_text("utf-8"))
    except ValueError:
        raise DamagedError(f"{folder / SCORE}: not JSON; delete it and make it again") from None
    parameters = run.num_parameters
    return [
        Cell(f"{run.validations[-1].perplexity:,.2f}") if run.validations else NOTHING,
        Cell(f"{scores['paper-BLEU']['score']:.1f}"),
        Cell(f"{scores['BLEU']['score']:.1f}"),
        NOTHING if parameters is None else Cell(f"{parameters / 1e6:.3g}"),
    ]


def _next_to_the_paper(row: str, results: Sequence[Cell]) -> list[Cell]:
    paper, (perplexity, bleu, sacrebleu, parameters) = TABLE_3[row], results
    return [
        *(Cell(f"{paper.perplexity:.2f}"), perplexity),
        *(Cell(f"{paper.bleu:.1f}"), bleu, sacrebleu),
        *(Cell("" if paper.millions is None else f"{paper.millions}"), parameters),
    ]


def _divided(value: Value, divisor: int) -> int:
    assert isinstance(value, int), value
    assert value % divisor == 0, f"{value} / {divisor}"
    return value // divisor


if __name__ == "__main__":
    sys.exit(main())
