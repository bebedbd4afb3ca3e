"""Options from the recipes' dataclasses: a flag per setting, --config, --preset, --print-config.

Precedence, from low to high: default of the schema, inherited value, preset, file, flag. Wrong
values pass through here unchanged: validation reports all of them together, in the same words for
files and flags.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from nmtkit.config.presets import PRESETS, PRESETS_HELP, WITHOUT_SHAPE
from nmtkit.config.problems import suggestion
from nmtkit.config.rules import contradictions
from nmtkit.config.schema import (
    AnyRecipe,
    Field,
    Recipe,
    TrainRecipe,
    Values,
    fields_of,
    recipe_of,
    sections_of,
    values_of,
)
from nmtkit.config.toml import build, dumps, read_text, read_values
from nmtkit.config.validate import check_values
from nmtkit.errors import ConfigError
from nmtkit.signals import ended_by_signals
from nmtkit_cli.command import FILE, refuse_without_effect
from nmtkit_cli.help import RecipeCommand, help_all_option, setting_help
from nmtkit_cli.streams import warn, write_lines

Body = Callable[..., None]


class PresetType(click.Choice):  # type: ignore[type-arg]  # generic in late versions
    """The name of a preset; case is ignored."""

    def __init__(self) -> None:
        super().__init__([*PRESETS], case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name in its declared case."""
        names = {name.lower(): name for name in PRESETS}
        if value.lower() not in names:
            self.fail(f"no preset {value!r}; {suggestion(value, PRESETS)}", param, ctx)
        return names[value.lower()]


PRESET = PresetType()

NO_VALUES: Values = MappingProxyType({})

_OTHER_FORMATS = (".json", ".yaml", ".yml")
"""Suffixes of the configurations of other toolkits."""


def recipe_command(
    name: str,
    recipe_type: type[AnyRecipe],
    examples: str,
    rare: Collection[str] = (),
    inherit: Callable[[Mapping[str, Any]], Values] = lambda _: NO_VALUES,
) -> Callable[[Body], RecipeCommand]:
    """Return a decorator that makes a command from a function of a recipe and parameters.

    The function's own click parameters are checked here: --print-config works without those that
    are required.

    Args:
        name: the command's name.
        recipe_type: the recipe whose settings become flags.
        examples: the examples at the end of the help.
        rare: the function's own options that only --help-all shows.
        inherit: returns values that presets, files and flags override, from the function's own
            parameters by name.
    """
    fields = fields_of(recipe_type)

    def decorate(body: Body) -> RecipeCommand:
        @functools.wraps(body)
        def run(
            config: Path | None, print_config: bool, preset: str | None = None, **values: Any
        ) -> None:
            flags = {key: values.pop(key) for key in fields}
            given = {key: value for key, value in flags.items() if value not in (None, ())}
            recipe = recipe_from(recipe_type, preset, config, given, inherit(values))
            if print_config:
                write_lines(dumps(recipe).removesuffix("\n").split("\n"))
                typed = [fields[key] for key in given if not fields[key].in_recipes]
                if typed:
                    names = " and ".join(one.flag for one in typed)
                    warn(f"{names}: not printed, as recipes run no programs; add it to --config")
            else:
                _require(command.needed, values)
                body(recipe=recipe, **values)

        command = click.command(name, cls=RecipeCommand, epilog=examples)(run)
        configuration = _configuration_options(has_presets=recipe_type is TrainRecipe)
        settings = [_option(field) for field in fields.values()]
        command.needed = [own for own in command.params if own.required]
        for own in command.needed:
            own.required = False
            if isinstance(own, click.Option):
                own.help = f"{own.help}  [required]"
        command.params += [*configuration, *settings, help_all_option()]
        command.headings = {
            **{str(option.name): "Configuration" for option in configuration},
            **{key: _heading(recipe_type, field.section) for key, field in fields.items()},
        }
        command.fields, command.rare = fields, rare
        return command

    return decorate


def refuse_idle_settings(
    recipe: Recipe, idle: Collection[str], when: str, used: Collection[str] = ()
) -> None:
    """Refuse settings that have no effect: as flags an error, in a file with a warning.

    Args:
        recipe: all settings.
        idle: sections, and names of settings.
        when: the condition, for the message.
        used: settings of these sections that have an effect.

    Raises:
        click.UsageError: the command line has one of them.
    """
    values, typed, of_file = values_of(recipe), [], []
    for name, field in fields_of(type(recipe)).items():
        if name in used or not {name, field.section} & {*idle}:
            continue
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            typed.append(field.flag)
        elif values[name] != field.default:
            of_file.append(field.flag)
    refuse_without_effect(dict.fromkeys(typed, True), when)
    if of_file:
        warn(f"{' and '.join(of_file)} of --config: no effect {when}")


def recipe_from(
    recipe_type: type[AnyRecipe],
    preset: str | None,
    config: Path | None,
    flags: Values,
    inherited: Values = NO_VALUES,
) -> AnyRecipe:
    """Return the recipe of inherited values, overridden by a preset, a file and flags, in order.

    A setting without effect is an error only as a flag, which was typed for this command. Others
    are dropped; a warning names those of the file.

    A preset with a shape is not combined with inherited values.

    Raises:
        ConfigError: names every problem.
    """
    from_file = {} if config is None else _read_file(config, recipe_type)
    if preset is not None and preset not in WITHOUT_SHAPE:
        inherited = {}
    elif preset is not None and not inherited and config is None:
        raise ConfigError(
            f"preset {preset!r} is for training that begins with a model; give --from, or choose "
            "another --preset"
        )
    from_preset = NO_VALUES if preset is None else PRESETS[preset]
    values = {**inherited, **from_preset, **from_file}
    idle = _without_effect(recipe_type, values, flags)
    kept = {name: value for name, value in values.items() if name not in idle}
    recipe = build(recipe_type, kept, flags)
    _warn_of(config, [text for name, text in idle.items() if name in from_file])
    return recipe


def _without_effect(recipe_type: type[AnyRecipe], values: Values, flags: Values) -> dict[str, str]:
    """Return the values and flags that have no effect together: messages by name."""
    good, _ = check_values(recipe_type, {**values, **flags})
    idle: dict[str, str] = {}
    while True:  # a dropped setting may leave another one without effect
        left = {name: value for name, value in good.items() if name not in idle}
        found = {
            problem.keys[0]: problem.text
            for problem in contradictions(recipe_of(recipe_type, left))
            if problem.is_idle
        }
        if not found:
            return idle
        idle |= found


def _warn_of(config: Path | None, texts: Sequence[str]) -> None:
    """Print a warning about settings of a file, once for all ranks, if there are any."""
    from nmtkit.runtime.environment import speaks_for_all_ranks

    if texts and speaks_for_all_ranks():
        warn(f"{config}: {'; '.join(texts)}")


class SettingType(click.ParamType):  # type: ignore[type-arg]  # generic in late versions
    """The value of a flag: a number if the setting is one and the text reads as one, or text."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.name = "|".join(field.choices) or field.kind.__name__

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the text as a number if the setting is one; unchanged if that fails.

        Raises:
            click.BadParameter: 0, where a word stands for it in recipes.
        """
        kind = self.field.kind
        try:
            number = kind(value) if kind in (int, float) else value
        except ValueError:
            return value
        if number == 0 and self.field.zero:
            self.fail(
                f"{value} is less than 1; give {self.field.zero} or a larger number",
                param,
                ctx,
            )
        return number

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Offer the choices; files for a text without choices; nothing for a number."""
        choices = self.field.choices
        if choices:
            return [CompletionItem(one) for one in choices if one.startswith(incomplete)]
        is_number = self.field.kind in (int, float)
        return [] if is_number else [CompletionItem(incomplete, type="file")]


def _option(field: Field) -> click.Option:
    flag = field.flag
    if field.kind is bool:
        opposite = flag.replace("--", "--no-", 1)
        return click.Option(
            [field.name, f"{flag}/{opposite}"], default=None, help=setting_help(field)
        )
    return click.Option(
        [field.name, flag, *filter(None, [field.short_flag])],
        type=SettingType(field),
        multiple=field.kind is tuple,
        metavar=_metavar(field),
        help=setting_help(field),
    )


def _metavar(field: Field) -> str:
    if field.choices and not field.metavar:
        return f"[{'|'.join(field.choices)}]"
    zero = field.zero
    return field.metavar or (f"NUMBER|{zero}" if zero else "NUMBER")


def _heading(recipe_type: type[AnyRecipe], section: str) -> str:
    """Return the heading of a section in the help: the first sentence of its docstring."""
    return str(sections_of(recipe_type)[section].__doc__).split(".")[0]


def _configuration_options(has_presets: bool) -> list[click.Option]:
    config = click.Option(
        ["--config"],
        type=FILE,
        metavar="FILE",
        help="TOML file with settings; flags override it.",
    )
    preset = click.Option(
        ["--preset"],
        type=PRESET,
        metavar="NAME",
        help="Preset, such as small or base; a named set of values, which --config and flags "
        f"override. Names: {PRESETS_HELP}.",
    )
    print_config = click.Option(
        ["--print-config"],
        is_flag=True,
        help="Print all settings as TOML for --config, and exit.",
    )
    return [config, *([preset] if has_presets else []), print_config]


def _read_file(path: Path, recipe_type: type[AnyRecipe]) -> Values:
    """Return the values of a recipe, which may come from a pipe."""
    try:
        # A signal ends the wait for a pipe in training too, which handles signals later.
        with nullcontext() if path.is_file() else ended_by_signals():
            text = read_text(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; check --config") from error
    if path.suffix in _OTHER_FORMATS:
        command = click.get_current_context().command_path
        raise ConfigError(
            f"{path}: settings are TOML, not {path.suffix[1:].upper()}; `{command} --print-config` "
            "prints all of them"
        )
    return read_values(text, recipe_type, str(path))


def _require(needed: Sequence[click.Parameter], values: Mapping[str, Any]) -> None:
    """Raise click.MissingParameter for the first of these parameters that has no value."""
    for parameter in needed:
        if values[str(parameter.name)] in (None, ()):
            raise click.MissingParameter(ctx=click.get_current_context(), param=parameter)
