"""`nmtkit preprocess`."""

from pathlib import Path

import click

from nmtkit.config.schema import PreprocessRecipe
from nmtkit_cli.command import FOLDER, count_option, usable_cores
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import work_reporter
from nmtkit_cli.text_paths import prefix_of

EXAMPLES = """\
# corpus/train.en, corpus/train.de, corpus/valid.en, corpus/valid.de (or .gz)
nmtkit preprocess -s en -t de --train corpus/train --valid corpus/valid --out data/

# news twice per epoch, tagged back-translations once, without lines of the test set
nmtkit preprocess -s en -t de --train news=2 --train bt --tag 'bt=<bt>' --valid dev --out data/ \\
    --held-out test --drop-duplicates --vocab-size 8000 --separate-vocabularies"""


@recipe_command("preprocess", PreprocessRecipe, EXAMPLES)
@click.option("--out", type=FOLDER, metavar="FOLDER", required=True, help="New dataset folder.")
@count_option(
    "--workers",
    "Worker processes; the dataset does not depend on it.  [default: one per core]",
    default=usable_cores,
)
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(recipe: PreprocessRecipe, out: Path, workers: int, overwrite: bool) -> None:
    """Turn parallel text into a dataset.

    Reads PREFIX.SOURCE and PREFIX.TARGET, learns or loads the vocabularies, filters pairs, and
    writes a folder with all that training needs. Prints a table of kept and dropped pairs.
    """
    from nmtkit.data.prepare import prepare

    prepare(recipe, out, workers, overwrite, work_reporter())


command.explain_arguments = prefix_of
