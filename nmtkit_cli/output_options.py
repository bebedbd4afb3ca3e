"""The options of a command for a file that it writes: its path, and --overwrite."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from nmtkit_cli.command import FILE

Body = Callable[..., None]


@dataclass(frozen=True)
class OutputFile:
    """A file to write.

    Attributes:
        path: the file.
        overwrite: replace it if it exists.
    """

    path: Path
    overwrite: bool


def output_options(flag: str, parameter: str, help: str) -> Callable[[Body], Body]:
    """Return a decorator that adds both options, as one parameter: an OutputFile or None."""

    def output_file(
        context: click.Context, _option: click.Parameter, path: Path | None
    ) -> OutputFile | None:
        if path is not None:
            return OutputFile(path, context.meta[__name__])
        if context.meta[__name__]:
            raise click.UsageError(f"--overwrite has no effect without {flag}; leave it out")
        return None

    overwrite = click.option(
        "--overwrite",
        is_flag=True,
        is_eager=True,  # known when the path is read
        expose_value=False,
        callback=_remember,
        help=f"Replace the file of {flag} if it exists.",
    )
    path = click.option(flag, parameter, type=FILE, metavar="FILE", callback=output_file, help=help)
    return lambda body: path(overwrite(body))


def _remember(context: click.Context, _option: click.Parameter, overwrite: bool) -> None:
    context.meta[__name__] = overwrite
