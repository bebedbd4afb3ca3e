"""`nmtkit info`."""

from pathlib import Path

import click

from nmtkit.config.preprocessing import LARGEST_VOCABULARY, MIN_ENTRIES
from nmtkit.config.presets import PRESETS_HELP
from nmtkit.config.schema import TrainRecipe
from nmtkit_cli.command import FILE, PATH, Command, refuse_without_effect
from nmtkit_cli.options import PRESET, recipe_from
from nmtkit_cli.streams import write_report

EXAMPLES = """\
nmtkit info data/ --check
nmtkit info run/
nmtkit info --preset base --vocab-size 37000 --paper
nmtkit info --config recipe.toml --vocab-size 8000 --json"""


@click.command("info", cls=Command, epilog=EXAMPLES)
@click.argument("path", type=PATH, metavar="[DATA|MODEL|RUN]", required=False)
@click.option("--check", is_flag=True, help="Check the hash of every file of a dataset.")
@click.option("--preset", type=PRESET, metavar="NAME", help=f"Preset of a model: {PRESETS_HELP}.")
@click.option("--config", type=FILE, metavar="FILE", help="Recipe of a model, as of train.")
@click.option(
    "--vocab-size",
    type=click.IntRange(MIN_ENTRIES, LARGEST_VOCABULARY),
    metavar="NUMBER",
    help="Entries of its vocabulary.",
)
@click.option("--paper", is_flag=True, help="Compare the parameters with the paper's table 3.")
@click.option("--json", "as_json", is_flag=True, help="Print a model as a JSON object.")
def command(
    path: Path | None,
    check: bool,
    preset: str | None,
    config: Path | None,
    vocab_size: int | None,
    paper: bool,
    as_json: bool,
) -> None:
    """Describe a dataset, a model, a run, or a model that is not trained yet.

    For DATA: pairs read, dropped by reason, tokens, examples. For MODEL or RUN: shape, descent,
    hashes, validations. For --preset or --config: parameters, operations, disk, memory.
    """
    if path is not None:
        given = {"--preset": preset, "--config": config, "--vocab-size": vocab_size}
        from nmtkit.reporting.saved_model import describe_folder

        refuse_without_effect({**given, "--paper": paper}, "on a folder")
        write_report(describe_folder(path, check, as_json))
        return
    refuse_without_effect({"--check": check}, "without a dataset")
    if preset is None and config is None:
        raise click.UsageError("nothing to describe; give a folder, --preset or --config")
    if vocab_size is None:
        raise click.UsageError("--vocab-size is missing; give the number of entries, such as 37000")
    from nmtkit.reporting.model_summary import summary_lines

    recipe = recipe_from(TrainRecipe, preset, config, {})
    write_report(summary_lines(recipe, vocab_size, paper, as_json))
