"""`nmtkit translate`."""

from pathlib import Path

import click

from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.command import PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.translating import translate_stream

EXAMPLES = """\
nmtkit translate model/ < test.en > test.de

# an ensemble; the four best translations per line, with scores
nmtkit translate model1/ model2/ --beam 8 --n-best 4 --output-format moses < test.en

# line by line, as input arrives
tail -f log.en | nmtkit translate model/ --stream

# ten sampled translations per line
nmtkit translate model/ --sample --n-best 10 --temperature 0.8 --output-format json < test.en"""


@recipe_command("translate", TranslateRecipe, {}, EXAMPLES)
@click.argument("models", type=PATH, metavar="MODEL...", required=False, nargs=-1)
def command(recipe: TranslateRecipe, models: tuple[Path, ...]) -> None:
    """Translate lines from standard input to standard output.

    MODEL is a model folder, a checkpoint, or a run: its best checkpoint, or RUN/last. Several
    models with the same vocabulary form an ensemble. Writes one line per input line, in order, as
    UTF-8; an empty line stays empty. Lines are translated in chunks, or one by one on a terminal
    and with --stream.
    """
    translate_stream(models, recipe)
