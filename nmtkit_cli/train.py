"""`nmtkit train`."""

from pathlib import Path

import click

from nmtkit.config.schema import TrainRecipe
from nmtkit_cli.command import FOLDER
from nmtkit_cli.options import recipe_command

EXAMPLES = """\
nmtkit train data/ --out run/ --preset base

# what a recipe comes to, as a file to edit and to train from
nmtkit train --preset small --dropout 0.2 --print-config > recipe.toml
nmtkit train data/ --out run/ --config recipe.toml --max-minutes 30"""


@recipe_command("train", TrainRecipe, {}, EXAMPLES)
@click.argument("data", type=FOLDER, metavar="DATA", required=False)
@click.option("--out", type=FOLDER, metavar="FOLDER", help="Folder of the run.  [required]")
def command(recipe: TrainRecipe, data: Path, out: Path) -> None:
    """Train a model on the dataset DATA, or continue where training stopped.

    Writes checkpoints into the folder of the run; each is a complete model. Given the folder of a
    run that was stopped, training goes on as if it had not been; settings that make the model
    what it is may not change then.
    """
    from nmtkit.training.run import train

    train(recipe, data, out)
