"""`nmtkit translate`."""

import time
from dataclasses import replace
from pathlib import Path

import click

from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import counted, say, standard_input, warn, write_lines

EXAMPLES = """\
nmtkit translate model/ < test.en > test.de

# line by line, as you type
nmtkit translate run/last --beam 1

# line by line, as they come
tail -f log.en | nmtkit translate model/ --chunk-lines 1"""

LONG_S = 5.0


@recipe_command("translate", TranslateRecipe, {}, EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL", required=False)
def command(recipe: TranslateRecipe, model: Path) -> None:
    """Translate lines from standard input to standard output.

    MODEL is the folder of a model or a checkpoint, or of a run, whose best checkpoint is taken;
    RUN/last is its last one. One line out for each line in, in order, as UTF-8; an empty line
    stays empty. Lines are answered in chunks, on a terminal one by one.
    """
    from nmtkit.decoding.translator import Translator
    from nmtkit.model_path import load_model
    from nmtkit.runtime import set_up
    from nmtkit.text.lines import decode_lines

    text = standard_input()
    translation = recipe.translation
    if text.isatty():
        translation = replace(translation, chunk_lines=1)
    loaded = load_model(model, set_up(recipe.runtime))
    translator = Translator(loaded.model, loaded.codec, recipe.search, translation, warn)
    begin, num_lines = time.monotonic(), 0
    for chunk in translator.translate_chunks(decode_lines(text, "standard input", "replace", warn)):
        write_lines(chunk)
        num_lines += len(chunk)
    seconds = time.monotonic() - begin
    if seconds > LONG_S and not text.isatty():
        say(f"translated {counted(num_lines, 'lines')}, {num_lines / seconds:.1f} lines/s")
