"""`nmtkit score`."""

from pathlib import Path

import click

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import FILE, PATH
from nmtkit_cli.options import recipe_command
from nmtkit_cli.scoring import check_usage, score_by_model, score_by_reference, score_contrastive

EXAMPLES = """\
nmtkit score --reference test.de < translations.de

# two systems, and whether their difference is significant
nmtkit score --reference test.de --metric bleu,chrf,ter --paired-ar baseline.de new.de

# parses against gold trees, a tree per line
nmtkit score --reference gold.trees --metric brackets < parsed.trees

# log-probabilities of translations by a model
nmtkit score --model model/ --source test.en test.de"""

OWN = ("systems", "reference", "model", "source")


@recipe_command("score", ScoreRecipe, {}, EXAMPLES, optional=OWN)
@click.argument("systems", type=FILE, metavar="[SYSTEM]...", nargs=-1)
@click.option("--reference", type=FILE, multiple=True, metavar="FILE", help="Reference file.")
@click.option("--model", type=PATH, metavar="MODEL", help="Model, checkpoint or run.")
@click.option("--source", type=FILE, metavar="FILE", help="Source text, for --model.")
@click.option("--json", "as_json", is_flag=True, help="Print an object per system, or per line.")
def command(
    recipe: ScoreRecipe,
    systems: tuple[Path, ...],
    reference: tuple[Path, ...],
    model: Path | None,
    source: Path | None,
    as_json: bool,
) -> None:
    """Score translations against references or by a model.

    SYSTEM is a file of translations, one per line, or standard input. Files may be gzipped.

    With --reference or --test-set, prints a line per metric: name, score and sacreBLEU's
    signature, which names the settings that the score depends on. Several systems give a table.
    BLEU and chrF range from 0 to 100, higher is better; lower is better for TER. With --metric
    brackets, lines are bracketed trees, and the score is EVALB's F1.

    With --model and --source, prints a line per translation: its natural log-probability, a tab,
    and the number of its tokens; both include the end symbol. Totals go to standard error. With
    --model and --contrastive, prints how often the model prefers right translations to wrong ones.
    """
    check_usage(recipe, systems, reference, model, source)
    if model and recipe.scoring.contrastive:
        score_contrastive(recipe, model, as_json)
    elif model and source:
        score_by_model(recipe, systems, model, source, as_json)
    else:
        score_by_reference(recipe, systems, reference, as_json)
