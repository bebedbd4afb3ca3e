"""The options of commands that also write their result as an HTML page: --html and --overwrite."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from nmtkit_cli.command import FILE

Body = Callable[..., None]


@dataclass(frozen=True)
class PageFile:
    """The file of a page.

    Attributes:
        path: the file.
        overwrite: replace it if it exists.
    """

    path: Path
    overwrite: bool


def page_options(help: str) -> Callable[[Body], Body]:
    """Return a decorator that adds both options, as one parameter `page`: a PageFile or None."""
    overwrite = click.option(
        "--overwrite",
        is_flag=True,
        is_eager=True,  # known when --html is read
        expose_value=False,
        callback=_remember,
        help="Replace the file of --html if it exists.",
    )
    page = click.option("--html", "page", type=FILE, metavar="FILE", callback=_page_file, help=help)
    return lambda body: page(overwrite(body))


def _remember(context: click.Context, _option: click.Parameter, overwrite: bool) -> None:
    context.meta[__name__] = overwrite


def _page_file(
    context: click.Context, _option: click.Parameter, path: Path | None
) -> PageFile | None:
    if path is not None:
        return PageFile(path, context.meta[__name__])
    if context.meta[__name__]:
        raise click.UsageError("--overwrite has no effect without --html; leave it out")
    return None
