"""The base of all commands: verbatim examples, --debug, checks of options."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from nmtkit.config.problems import suggestion
from nmtkit.signals import ended_by_signals
from nmtkit_cli.unknown_options import unknown_options

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)

HELP_NAMES = ("-h", "--help")
DEBUG = "--debug"


def at_least_one(
    _context: click.Context, _option: click.Parameter, number: int | None
) -> int | None:
    """Check a count (click's own range would appear in the help)."""
    if number is not None and number < 1:
        raise click.BadParameter(f"{number} is less than 1")
    return number


def count_option(
    name: str, help: str, default: int | Callable[[], int] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds an option with a count."""
    shown = f"{help}  [default: {default:,}]" if isinstance(default, int) else help
    return click.option(
        name, type=int, callback=at_least_one, metavar="NUMBER", default=default, help=shown
    )


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _given(options: Mapping[str, object]) -> list[str]:
    """Return the names of the options whose value is not None, False or ()."""
    return [name for name, value in options.items() if not (value in (None, ()) or value is False)]


def given_one(options: Mapping[str, object]) -> str | None:
    """Return the name of the one option that is given; None without any.

    Args:
        options: their values, by name.

    Raises:
        click.UsageError: several are given.
    """
    given = _given(options)
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")
    return next(iter(given), None)


def refuse_without_effect(options: Mapping[str, object], when: str) -> None:
    """Raise click.UsageError if one of the options, values by name, is given."""
    if given := _given(options):
        have, them = ("has", "it") if len(given) == 1 else ("have", "them")
        raise click.UsageError(f"{' and '.join(given)} {have} no effect {when}; leave {them} out")


def debug_option() -> click.Option:
    """Return the option --debug; whoever runs the command line looks for it there."""
    help = "Show the traceback of an error."
    return click.Option([DEBUG], is_flag=True, expose_value=False, help=help)


class Group(click.Group):
    """A group of commands with an epilog of examples; an unknown command is refused."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of use."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples verbatim."""
        write_examples(str(self.epilog), formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before a command; click.UsageError if nothing is given."""
        if not args and not ctx.resilient_parsing:
            names = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"no command; known are: {names}", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; click.UsageError if it is unknown."""
        names = self.list_commands(ctx)
        if args[0] not in names and not ctx.resilient_parsing:
            message = f"no command {args[0]!r}; {suggestion(args[0], names, 'commands')}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)


class Command(click.Command):
    """A command with an epilog of examples.

    Attributes:
        help_names: names of the option that shows the help. Such a command has one help, so
            --help-all is one of them.
        handles_signals: signals stay blocked until the command handles them; otherwise they end it.
        explain_arguments: returns what to write instead of arguments that are too many.
    """

    help_names: tuple[str, ...] = (*HELP_NAMES, "--help-all")
    handles_signals = False
    explain_arguments: Callable[[Sequence[str]], str] = staticmethod(lambda _: "leave it out")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; KeyboardInterrupt or `EndedBySignal` if a signal ends it."""
        with nullcontext() if self.handles_signals else ended_by_signals():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; click.UsageError for unknown options, with what to write."""
        if not ctx.resilient_parsing and (unknown := unknown_options(ctx, args)):
            raise click.UsageError(unknown, ctx)
        ctx.allow_extra_args = True  # refused here
        try:
            extra = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where an option lacks its value
            raise
        if extra and not ctx.resilient_parsing:
            listed = " ".join(extra)
            raise click.UsageError(f"unexpected {listed}; {self.explain_arguments(extra)}", ctx)
        return extra

    def get_help_option_names(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of --help (click remembers those of the first call)."""
        return list(self.help_names)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters, --debug and --help."""
        *declared, help_option = super().get_params(ctx)
        return [*declared, debug_option(), help_option]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples verbatim; click would fill lines."""
        write_examples(str(self.epilog), formatter)


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write a section of verbatim lines."""
    with formatter.section("Examples"):
        for line in examples.split("\n"):
            formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")
