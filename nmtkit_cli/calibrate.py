"""`nmtkit calibrate`."""

from pathlib import Path

import click

from nmtkit.config.schema import CalibrateRecipe
from nmtkit_cli.command import FILE, PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import open_pairs, say_opening, warn, work_reporter, write_lines

EXAMPLES = "nmtkit calibrate model/ --source dev.en --reference dev.de"


@recipe_command("calibrate", CalibrateRecipe, EXAMPLES)
@click.argument("model", type=PATH, metavar="MODEL")
@click.option(
    "--source", type=FILE, metavar="FILE", required=True, help="Lines to translate (or .gz)."
)
@click.option(
    "--reference", type=FILE, metavar="FILE", required=True, help="Their translations (or .gz)."
)
def command(recipe: CalibrateRecipe, model: Path, source: Path, reference: Path) -> None:
    """Learn to predict the chrF of a model's translations.

    Translates lines, compares them with references, and stores in the model folder how chrF
    follows from probabilities and lengths. `nmtkit translate` with the same search, and its
    setting `quality`, then adds the expected chrF of each line and its standard error. Give lines
    like those that will be translated, which training has not seen; a thousand suffice.

    Prints how expected and true chrF agree on lines that were held out: the correlation of their
    ranks, then the means of five groups of lines, the worst first.
    """
    say_opening(model)
    from nmtkit.calibration import calibrate

    with open_pairs(source, reference) as lines:
        pairs = [*lines]
    write_lines(calibrate(model, recipe, pairs, work_reporter(), warn))
