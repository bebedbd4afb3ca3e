"""What every command has: examples as they are typed, --debug."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)

HELP_NAMES = ("-h", "--help")


@dataclass
class Session:
    """What is to know of the command line as a whole.

    Attributes:
        arguments: what was typed after `nmtkit`.
        shows_tracebacks: --debug was given.
    """

    arguments: tuple[str, ...]
    shows_tracebacks: bool = False


def _show_tracebacks(context: click.Context, _option: click.Parameter, is_given: bool) -> None:
    session = context.find_object(Session)
    if session is not None:
        session.shows_tracebacks |= is_given


def at_least_one(
    _context: click.Context, _option: click.Parameter, number: int | None
) -> int | None:
    """Check a count; click's own range would be written into the help."""
    if number is not None and number < 1:
        raise click.BadParameter(f"{number} is less than 1")
    return number


def count_option(
    name: str, help: str, default: int | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator for an option that takes a count."""
    shown = help if default is None else f"{help}  [default: {default:,}]"
    return click.option(
        name, type=int, callback=at_least_one, metavar="NUMBER", default=default, help=shown
    )


def read_counts(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> list[int] | None:
    """Read counts that are separated by commas, each once."""
    if text is None:
        return None
    try:
        counts = list(dict.fromkeys(map(int, text.split(","))))
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise click.BadParameter(f"{text!r} is not a list of numbers from 1 on, such as 5,10,20")
    return counts


def read_part(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Read I/N, the I-th of N parts."""
    if text is None:
        return None
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 0 < int(number) <= int(count)):
        raise click.BadParameter(f"{text!r} is not the I-th of N parts, such as 2/4")
    return int(number), int(count)


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def given_one(options: Mapping[str, object]) -> str | None:
    """Return which one of some options is given, None if none is.

    Args:
        options: their values by their names.

    Raises:
        click.UsageError: several are.
    """
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")
    return next(iter(given), None)


def refuse_without_effect(options: Sequence[str], when: str) -> None:
    """Raise click.UsageError if there are such options among those that were given."""
    if options:
        have, them = ("has", "it") if len(options) == 1 else ("have", "them")
        raise click.UsageError(f"{' and '.join(options)} {have} no effect {when}; leave {them} out")


def debug_option() -> click.Option:
    """Return the option that makes errors show where in the code they arose."""
    return click.Option(
        ["--debug"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_tracebacks,
        help="Show the traceback of an error.",
    )


class Command(click.Command):
    """A command with an epilog of examples."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of --help: whatever calls first, click remembers them."""
        return list(HELP_NAMES)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters, --debug and --help."""
        *declared, help_option = super().get_params(ctx)
        return [*declared, debug_option(), help_option]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples as they are, unlike click, which fills lines."""
        write_examples(str(self.epilog), formatter)


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write a section of lines as they are."""
    with formatter.section("Examples"):
        for line in examples.split("\n"):
            formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")
