"""`nmtkit translate`."""

import gc
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.command import PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import Progress, say, standard_input, warn, write_lines

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
    from nmtkit.decoding.formats import LINE_BYTES, make_writer, read_requests
    from nmtkit.decoding.workers import open_translator
    from nmtkit.text.lines import decode_lines

    text = standard_input()
    if text.isatty():
        recipe = replace(recipe, translation=replace(recipe.translation, chunk_lines=1))
    translator, write = open_translator(models, recipe, warn), make_writer(recipe.output)
    gc.freeze()  # torch's million objects stay to the end; scanning them halves the speed of lines
    max_bytes = LINE_BYTES[recipe.output.input_format]
    lines = decode_lines(text, "standard input", "replace", warn, max_bytes)
    progress, number = Progress("translated", time.monotonic), 0
    repair_counts: Counter[bool | None] = Counter()
    for chunk in translator.answer_all(read_requests(lines, recipe.output, "standard input")):
        write_lines(line for place, one in enumerate(chunk, number) for line in write(one, place))
        number += len(chunk)
        repair_counts.update(answer.translations[0].is_repaired for answer in chunk)
        progress.add(len(chunk), sum(answer.translations[0].num_tokens for answer in chunk))
    progress.end()
    if summary := translator.summarize(repair_counts):
        say(summary)
