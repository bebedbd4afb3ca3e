"""`nmtkit rerank`."""

from pathlib import Path

import click

from nmtkit.config.schema import RerankRecipe
from nmtkit_cli.command import FILE
from nmtkit_cli.options import recipe_command
from nmtkit_cli.reranking import check_usage, rerank_files, tune_weights

EXAMPLES = """\
# minimum Bayes risk (MBR): of 64 samples, the one most similar to all
nmtkit translate model/ --sample --n-best 64 --output-format json < test.en > samples.jsonl
nmtkit rerank --features mbr:chrf samples.jsonl > test.de

# 8-best lists by several features; weights from a dev set
nmtkit rerank --features model,backward:de-en/,length --tune dev.de dev.jsonl > weights.toml
nmtkit rerank --features model,backward:de-en/,length --weights weights.toml test.jsonl > test.de

# the best translations of two systems, by a third model
nmtkit rerank --features forced:model3/ system1.jsonl system2.jsonl > test.de"""


@recipe_command("rerank", RerankRecipe, {}, EXAMPLES, optional=("files", "tune"))
@click.argument("files", type=FILE, metavar="[FILE]...", nargs=-1)
@click.option(
    "--tune",
    type=FILE,
    multiple=True,
    metavar="REFERENCE",
    help="Tune weights for the best score against REFERENCE, and print them as TOML.",
)
def command(recipe: RerankRecipe, files: tuple[Path, ...], tune: tuple[Path, ...]) -> None:
    """Choose the best translation of each line by weighted features.

    FILE has the candidates, n-best lists or samples: JSON lines as `nmtkit translate
    --output-format json` writes them, or standard input. Several files have translations of the
    same lines by several systems. Files may be gzipped.

    Prints the candidate of each line with the highest weighted sum of features; of equal ones, the
    first. --output-format json prints all candidates in their new order. Several features need
    --weights; --tune finds them on a dev set and prints them as TOML.
    """
    check_usage(recipe, tune)
    if tune:
        tune_weights(recipe, files, tune)
    else:
        rerank_files(recipe, files)
