"""Help of commands with a flag per setting.

--help shows the common options on one screen: the command's own and those of common settings.
--help-all shows every option by topic.
"""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import click

from nmtkit.config.schema import Field, Value
from nmtkit.units import counted
from nmtkit_cli.command import HELP_NAMES, Command, write_examples

_FLAGS_WIDTH = 24
"""Width of the column of flags in --help; a longer flag has its own line."""


class RecipeCommand(Command):
    """A command with a flag per setting.

    Attributes:
        fields: its settings, by name.
        headings: the topic of each option, by name; the command's own options have none.
        rare: names of its own options that only --help-all shows.
        needed: its own parameters without which it does not run.
    """

    fields: Mapping[str, Field] = {}
    headings: Mapping[str, str] = {}
    rare: Collection[str] = ()
    needed: Sequence[click.Parameter] = ()
    help_names = HELP_NAMES  # --help-all is an option of its own

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write two paragraphs, the common options, and the first example."""
        options = [*self._options(ctx)]
        common = sorted(filter(self._is_common, options), key=self._is_optional)
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            paragraphs = inspect.cleandoc(str(self.help)).split("\n\n")
            formatter.write_text("\n\n".join(paragraphs[:2]))
        with formatter.section("Options"):
            records = [self._short_record(option, ctx) for option in common]
            formatter.write_dl(records, col_max=_FLAGS_WIDTH)
        write_examples(str(self.epilog).partition("\n\n")[0], formatter)
        formatter.write_paragraph()
        num_further = len(options) - len(common) - len(("--help", "--help-all"))
        formatter.write(f"{ctx.command_path} --help-all shows {num_further} further options.\n")

    def full_help(self, ctx: click.Context) -> str:
        """Return the help of every option, by topic."""
        formatter = ctx.make_formatter()
        super().format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every option, in a section per heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self._options(ctx):
            heading = self.headings.get(str(option.name), "Options")
            sections.setdefault(heading, []).append(_record(option, ctx))
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def _options(self, ctx: click.Context) -> Iterator[click.Option]:
        yield from (one for one in self.get_params(ctx) if isinstance(one, click.Option))

    def _is_common(self, option: click.Option) -> bool:
        name = str(option.name)
        if name in self.fields:
            field = self.fields[name]
            return field.is_common and (not field.common_in or self.name in field.common_in)
        return option.expose_value and name not in self.rare

    def _is_optional(self, option: click.Option) -> bool:
        field = self.fields.get(str(option.name))
        return not (field.required if field else "[required]" in str(option.help))

    def _short_record(self, option: click.Option, ctx: click.Context) -> tuple[str, str]:
        flags, text = _record(option, ctx)
        field = self.fields.get(str(option.name))
        short = _first_clause(text) if field is None else _short_setting_help(field)
        return flags.partition(" / ")[0], short


def help_all_option() -> click.Option:
    """Return the option that shows every option of a `RecipeCommand`."""
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_full_help,
        help="Show every option by topic, and exit.",
    )


def setting_help(field: Field) -> str:
    """Return the help of a setting, with its default."""
    return f"{field.help}{_default(field)}"


def _short_setting_help(field: Field) -> str:
    """Return the first clause of a help, and the default unless it is 0 or off."""
    is_shown = field.default or field.zero or field.required
    return f"{_first_clause(field.help)}{_default(field) if is_shown else ''}"


def _first_clause(text: str) -> str:
    """Return a help up to its first full stop, colon or semicolon, and its default if any."""
    text, gap, default = text.partition("  [")
    clause, *_ = re.split(r"[.:;] ", text, maxsplit=1)
    return f"{clause.removesuffix('.')}.{gap}{default}"


def _default(field: Field) -> str:
    if field.required:
        return "  [required]"
    if field.default in ("", ()):
        return ""
    default = field.default or field.zero or field.default
    return f"  [default: {_shown(default, field.unit)}]"


def _shown(default: Value, unit: str) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return counted(default, unit) if isinstance(default, int | float) else str(default)


def _record(option: click.Option, context: click.Context) -> tuple[str, str]:
    """Return an option's flags and its help."""
    record = option.get_help_record(context)
    assert record is not None, f"{option.name} is hidden"
    return record


def _show_full_help(context: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        assert isinstance(context.command, RecipeCommand), context.command
        click.echo(context.command.full_help(context))
        context.exit()
