"""`nmtkit attention`."""

from pathlib import Path

import click

from nmtkit.config.schema import AttentionRecipe
from nmtkit_cli.command import PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import standard_input, warn, write_bytes

INPUT = "standard input"
EXAMPLES = """\
nmtkit attention model/ --translate < test.en > attention.html

# sources and their translations, in two columns
paste test.en test.de | nmtkit attention model/ > attention.html

# the paper's figure 3: what a word attends to in layer 5 of the encoder
nmtkit attention model/ --format svg --layer 5 --word making < sentence.en > figure.svg"""


@recipe_command("attention", AttentionRecipe, {}, EXAMPLES)
@click.argument("model", type=PATH, metavar="MODEL", required=False)
def command(recipe: AttentionRecipe, model: Path) -> None:
    """Show what attends to what, in a page, a picture, or as JSON.

    Lines come from standard input: a source each, and behind a tab its translation if there is
    one. Of a source alone there is the encoder's attention to itself; with a translation, given or
    found by --translate, also the decoder's to what it has written, and to the source.

    The page, on standard output, has all layers and heads of every sentence, and is one file that
    any browser shows without a network.
    """
    from nmtkit.reporting.attention.view import show
    from nmtkit.text.lines import decode_lines

    lines = decode_lines(standard_input(), INPUT, "replace", warn)
    for part in show(model, recipe, lines, INPUT):
        write_bytes(part)
