"""`nmtkit score`."""

from pathlib import Path

import click

from nmtkit.config.schema import ScoreRecipe
from nmtkit_cli.command import FILE, PATH, given_one, refuse_without_effect
from nmtkit_cli.options import changed_flags, recipe_command
from nmtkit_cli.scoring import score_by_model, score_by_reference

EXAMPLES = """\
nmtkit score --reference test.de < translations.de
nmtkit translate model/ < test.en | nmtkit score --reference test.de --metric bleu,chrf,ter

# how probable a model finds each translation
nmtkit score --model model/ --source test.en < test.de"""

OWN = ("reference", "metric", "model", "source")


@recipe_command("score", ScoreRecipe, {}, EXAMPLES, optional=OWN)
@click.option("--reference", type=FILE, metavar="FILE", help="What would be right, line by line.")
@click.option("--metric", metavar="LIST", help="One or more: bleu,chrf,ter.  [default: bleu]")
@click.option("--model", type=PATH, metavar="MODEL", help="What `nmtkit translate` takes as MODEL.")
@click.option("--source", type=FILE, metavar="FILE", help="What was translated, line by line.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object, or one a line.")
def command(
    recipe: ScoreRecipe,
    reference: Path | None,
    metric: str | None,
    model: Path | None,
    source: Path | None,
    as_json: bool,
) -> None:
    """Score translations on standard input, against a reference or by a model.

    With --reference: a line for each metric, through sacreBLEU: name, score and signature, which
    names the settings that the score depends on. BLEU and chrF range from 0 to 100, higher is
    better; of TER, lower is.

    With --model and --source: a line for each translation, with its natural log-probability, a
    tab, and the number of its tokens; the end symbol is counted in both. The sums and the
    perplexity are told on standard error. Files may be gzipped.
    """
    if given_one({"--reference": reference, "--model": model}) is None:
        raise click.UsageError("give --reference, or --model and --source")
    if (model is None) != (source is None):
        raise click.UsageError("--model and --source go together; give both or neither")
    if model and source:
        refuse_without_effect(["--metric"] if metric else [], "with --model")
        score_by_model(recipe, model, source, as_json)
    elif reference:
        refuse_without_effect(changed_flags(recipe), "without --model")
        score_by_reference(reference, metric or "bleu", as_json)
