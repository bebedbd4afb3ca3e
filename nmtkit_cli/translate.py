"""`nmtkit translate`."""

from pathlib import Path

import click

from nmtkit.config.schema import TranslateRecipe
from nmtkit_cli.command import PATH, read_part
from nmtkit_cli.options import recipe_command
from nmtkit_cli.streams import warn, work_reporter
from nmtkit_cli.translating import check_usage, translate_stream

EXAMPLES = """\
nmtkit translate model/ < test.en > test.de

# a corpus; the same command continues after a kill
nmtkit translate model/ --input big.en.gz --output big.de.gz

# an ensemble; the four best translations per line, with scores
nmtkit translate model1/ model2/ --beam 8 --n-best 4 --output-format moses < test.en

# line by line, as input arrives
tail -f log.en | nmtkit translate model/ --stream

# ten sampled translations per line
nmtkit translate model/ --sample --n-best 10 --temperature 0.8 --output-format json < test.en"""


@recipe_command("translate", TranslateRecipe, {}, EXAMPLES, optional=("source", "target", "shard"))
@click.argument("models", type=PATH, metavar="MODEL...", required=False, nargs=-1)
@click.option("--input", "source", type=PATH, metavar="FILE", help="Translate this file (or .gz).")
@click.option("--output", "target", type=PATH, metavar="FILE", help="Write to this file (or .gz).")
@click.option(
    "--shard", callback=read_part, metavar="I/N", help="Translate shard I of N of the file."
)
@click.option("--overwrite", is_flag=True, help="Replace the output at the end, if it exists.")
def command(
    recipe: TranslateRecipe,
    models: tuple[Path, ...],
    source: Path | None,
    target: Path | None,
    shard: tuple[int, int] | None,
    overwrite: bool,
) -> None:
    """Translate standard input to standard output, or a file into another.

    MODEL is a model folder, a checkpoint, or a run: its best checkpoint, or RUN/last. Several
    models with the same vocabulary form an ensemble. Writes one line per input line, in order, as
    UTF-8; an empty line stays empty. Lines are translated in chunks, or one by one on a terminal
    and with --stream. From file to file, the same command continues after an interruption.
    """
    recipe = check_usage(models, recipe, source, target, shard, overwrite)
    if source is None or target is None:
        translate_stream(models, recipe)
    else:
        from nmtkit.decoding.corpus import CorpusFiles, translate_file

        files = CorpusFiles(source, target, shard or (1, 1), overwrite)
        translate_file(models, recipe, files, work_reporter(), warn)
