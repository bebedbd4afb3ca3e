"""`nmtkit attention`."""

from pathlib import Path

import click

from nmtkit.config.schema import AttentionRecipe
from nmtkit_cli.command import PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import say_opening, standard_input, warn, write_bytes

INPUT = "standard input"
EXAMPLES = """\
nmtkit attention model/ --translate < test.en > attention.html

# sources and translations in two columns
paste test.en test.de | nmtkit attention model/ > attention.html

# the paper's figure 3: the attention of a word in layer 5 of the encoder
nmtkit attention model/ --format svg --layer 5 --word making < sentence.en > figure.svg"""


@recipe_command("attention", AttentionRecipe, EXAMPLES)
@click.argument("model", type=PATH, metavar="MODEL")
def command(recipe: AttentionRecipe, model: Path) -> None:
    """Show the attention of a model as a page, a picture or JSON.

    Reads a source per line, optionally with a tab and its translation. A source alone shows the
    encoder's self-attention. A translation adds the decoder's self-attention and
    cross-attention; --translate makes one.

    The page has all layers and heads of every sentence. It is one file, which a browser shows
    without a network.
    """
    say_opening(model)
    from nmtkit.decoding.formats import INPUT_FORMATS
    from nmtkit.reporting.attention.view import show
    from nmtkit.text.lines import decode_lines

    max_bytes = INPUT_FORMATS[recipe.view.input_format].max_bytes
    lines = decode_lines(standard_input(), INPUT, warn, max_bytes)
    for part in show(model, recipe, lines, INPUT, warn):
        write_bytes(part)
