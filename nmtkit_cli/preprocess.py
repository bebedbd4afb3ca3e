"""`nmtkit preprocess`."""

import os
import sys
from pathlib import Path

import click

from nmtkit.config.schema import PreprocessRecipe
from nmtkit_cli.command import FOLDER, at_least_one
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import say

EXAMPLES = """\
# corpus/train.en, corpus/train.de, corpus/valid.en, corpus/valid.de (or .gz)
nmtkit preprocess -s en -t de --train corpus/train --valid corpus/valid --out data/

# two corpora, a smaller vocabulary for each side
nmtkit preprocess -s en -t de --train news --train web --valid dev --out data/ \\
    --vocab-size 8000 --separate-vocabularies"""


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@recipe_command(
    "preprocess", PreprocessRecipe, {"source_lang": "-s", "target_lang": "-t"}, EXAMPLES
)
@click.option(
    "--out", type=FOLDER, metavar="FOLDER", help="New folder for the dataset.  [required]"
)
@click.option(
    "--workers",
    type=int,
    callback=at_least_one,
    metavar="NUMBER",
    default=usable_cores,
    help="Processes that turn text into ids; the dataset is the same.  [default: one a core]",
)
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(recipe: PreprocessRecipe, out: Path, workers: int, overwrite: bool) -> None:
    """Turn parallel text into a dataset.

    Reads PREFIX.SOURCE and PREFIX.TARGET in lock-step, learns a vocabulary or takes a given one,
    drops pairs that are too long, and writes ids to a new folder, which appears when it is
    complete. The folder holds all that training needs.
    """
    from nmtkit.data.prepare import prepare

    prepare(recipe, out, workers=workers, overwrite=overwrite, report=say)
