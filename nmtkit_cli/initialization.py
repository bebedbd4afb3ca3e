"""The options of `nmtkit train` for a run that begins with another model's weights.

A module of its own: files of commands are short.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from nmtkit.config.fields import Values
from nmtkit_cli.command import refuse_without_effect

_OPTIONS = (
    click.option(
        "--from",
        "parent",
        type=click.Path(path_type=Path),
        metavar="MODEL",
        help="Begin with the weights and the shape of a model folder, run or checkpoint.",
    ),
    click.option(
        "--update-vocabulary",
        is_flag=True,
        help="With --from, allow data of another vocabulary or of other languages.",
    ),
)


def parent_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --from and --update-vocabulary to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def inherited(parameters: Mapping[str, Any]) -> Values:
    """Return the [model] settings of --from."""
    if parameters["parent"] is None:
        flags = ["--update-vocabulary"] if parameters["update_vocabulary"] else []
        refuse_without_effect(flags, "without --from")
        return {}
    from nmtkit.storage.model_description import shape_from

    return vars(shape_from(parameters["parent"], parameters["out"]))


def rank_flags(parent: Path | None, update_vocabulary: bool) -> list[str]:
    """Return the options for the ranks that a command starts."""
    return [f"--from={parent}", *["--update-vocabulary"] * update_vocabulary] if parent else []
