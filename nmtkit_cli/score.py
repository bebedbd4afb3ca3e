"""`nmtkit score`."""

from pathlib import Path

import click

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import FILE, PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.page_options import PageFile, page_options
from nmtkit_cli.scoring import TextFiles, check_usage, score_by_reference
from nmtkit_cli.scoring_by_model import score_by_model

EXAMPLES = """\
nmtkit score --reference test.de < translations.de

# two systems, whether their difference is significant, and a page that compares them
nmtkit score --reference test.de --metric bleu,chrf --paired-ar --html page.html old.de new.de

nmtkit score --reference gold.trees --metric brackets < parsed.trees

# log-probabilities of translations by a model
nmtkit score --model model/ --source test.en test.de"""

OWN = ("systems", "reference", "model", "source", "page")


@recipe_command("score", ScoreRecipe, {}, EXAMPLES, optional=OWN)
@click.argument("systems", type=FILE, metavar="[SYSTEM]...", nargs=-1)
@click.option("--reference", type=FILE, multiple=True, metavar="FILE", help="Reference file.")
@click.option("--model", type=PATH, metavar="MODEL", help="Model, checkpoint or run.")
@click.option("--source", type=FILE, metavar="FILE", help="Source text.")
@page_options("Also write a page that compares systems and sentences.")
@click.option("--json", "as_json", is_flag=True, help="Print an object per system, or per line.")
def command(
    recipe: ScoreRecipe,
    systems: tuple[Path, ...],
    reference: tuple[Path, ...],
    model: Path | None,
    source: Path | None,
    page: PageFile | None,
    as_json: bool,
) -> None:
    """Score translations against references or by a model.

    SYSTEM is a file of translations, one per line, or standard input. Files may be gzipped. With
    --reference or --test-set, prints a line per metric: name, score and sacreBLEU's signature
    of all settings; of several systems, a table. Higher is better, except for TER; BLEU and chrF
    end at 100. --metric brackets scores trees by EVALB's F1.

    With --model and --source, prints a line per translation: its natural log-probability, a tab,
    and the number of its tokens; both include the end symbol. Totals go to standard error.
    """
    texts = TextFiles(systems, reference, source)
    check_usage(recipe, texts, model, page)
    if model:
        score_by_model(recipe, texts, model, as_json)
    else:
        score_by_reference(recipe, texts, page, as_json)
