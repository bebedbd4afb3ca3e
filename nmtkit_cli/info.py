"""`nmtkit info`."""

from pathlib import Path

import click

from nmtkit.config.presets import PRESETS_HELP
from nmtkit.config.schema import TrainRecipe
from nmtkit_cli.command import FILE, FOLDER, Command, refuse_without_effect
from nmtkit_cli.options import PresetType, recipe_from
from nmtkit_cli.streams import write_lines

EXAMPLES = """\
nmtkit info data/ --check
nmtkit info --preset base --vocab-size 37000 --paper
nmtkit info --config recipe.toml --vocab-size 8000 --json"""


@click.command("info", cls=Command, epilog=EXAMPLES)
@click.argument("data", type=FOLDER, required=False)
@click.option("--check", is_flag=True, help="Check the hash of every file of the dataset.")
@click.option(
    "--preset", type=PresetType(), metavar="NAME", help=f"Preset of a model: {PRESETS_HELP}."
)
@click.option("--config", type=FILE, metavar="FILE", help="Recipe of a model, as of train.")
@click.option("--vocab-size", type=int, metavar="NUMBER", help="Entries of its vocabulary.")
@click.option("--paper", is_flag=True, help="Compare the parameters with the paper's table 3.")
@click.option("--json", "as_json", is_flag=True, help="Print the model as a JSON object.")
def command(
    data: Path | None,
    check: bool,
    preset: str | None,
    config: Path | None,
    vocab_size: int | None,
    paper: bool,
    as_json: bool,
) -> None:
    """Describe a dataset or a model.

    For the dataset DATA: pairs read, pairs dropped by reason, tokens, examples of dropped pairs.
    For a model by --preset or --config: parameters by part, operations per token, disk, memory.
    """
    given = {"--preset": preset, "--config": config, "--vocab-size": vocab_size}
    flags = [name for name, value in given.items() if value is not None]
    flags += [*(["--paper"] if paper else []), *(["--json"] if as_json else [])]
    if data is not None:
        from nmtkit.data.audit import describe

        refuse_without_effect(flags, "on a dataset")
        write_lines(describe(data, check))
        return
    refuse_without_effect(["--check"] if check else [], "without DATA")
    if preset is None and config is None:
        raise click.UsageError("nothing to describe; give DATA, --preset or --config")
    if vocab_size is None:
        raise click.UsageError("--vocab-size is missing; give the number of entries, such as 37000")
    from nmtkit.reporting.model_summary import describe_model

    recipe = recipe_from(TrainRecipe, preset, config, {})
    write_lines(describe_model(recipe, vocab_size, paper, as_json))
