"""`nmtkit score`."""

from pathlib import Path

import click

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import FILE, PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.scoring import check_usage, score_by_model, score_by_reference

EXAMPLES = """\
nmtkit score --reference test.de < translations.de

# two systems, and whether they differ by more than chance
nmtkit score --reference test.de --metric bleu,chrf,ter --paired-ar baseline.de new.de

# parses against gold trees, a tree a line
nmtkit score --reference gold.trees --metric brackets < parsed.trees

# how probable a model finds each translation
nmtkit score --model model/ --source test.en < test.de"""

OWN = ("systems", "reference", "model", "source")


@recipe_command("score", ScoreRecipe, {}, EXAMPLES, optional=OWN)
@click.argument("systems", type=FILE, metavar="[SYSTEM]...", nargs=-1)
@click.option("--reference", type=FILE, multiple=True, metavar="FILE", help="References.")
@click.option("--model", type=PATH, metavar="MODEL", help="Model, checkpoint or run.")
@click.option("--source", type=FILE, metavar="FILE", help="Source text of the translations.")
@click.option("--json", "as_json", is_flag=True, help="Print an object per system, or per line.")
def command(
    recipe: ScoreRecipe,
    systems: tuple[Path, ...],
    reference: tuple[Path, ...],
    model: Path | None,
    source: Path | None,
    as_json: bool,
) -> None:
    """Score translations, against references or by a model.

    SYSTEM is a file of translations, line by line; without any they come from standard input.
    Files may be gzipped.

    With --reference, given once or several times, or --test-set: a line for each metric, through
    sacreBLEU: name, score and signature, which names the settings that the score depends on. For
    several systems it is a table. BLEU and chrF range from 0 to 100, higher is better; of TER,
    lower is. With --metric brackets, lines are bracketed trees, and F1 is EVALB's.

    With --model and --source: a line for each translation, with its natural log-probability, a
    tab, and the number of its tokens; the end symbol is counted in both. Its perplexity,
    exp(-log-probability / tokens), is in --json too. The sums and their perplexity are printed to
    standard error.
    """
    check_usage(recipe, systems, reference, model, source)
    if model and source:
        score_by_model(recipe, model, source, as_json)
    else:
        score_by_reference(recipe, systems, reference, as_json)
