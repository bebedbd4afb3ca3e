"""--help is one screen of the common options; --help-all has every option by topic."""

import importlib
import re
from functools import cache

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from nmtkit.config.schema import RECIPES, ScoreRecipe, fields_of
from nmtkit_cli.command import Command
from nmtkit_cli.command_line import COMMANDS
from nmtkit_cli.help import RecipeCommand
from nmtkit_cli.options import recipe_command

WIDTH, HEIGHT = 80, 40


def command_of(name: str) -> Command:
    command = importlib.import_module(f"nmtkit_cli.{name}").command
    assert isinstance(command, Command)
    return command


@cache
def output(name: str, *arguments: str) -> str:
    result = CliRunner().invoke(
        command_of(name), arguments, prog_name=f"nmtkit {name}", terminal_width=WIDTH
    )
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def options_of(name: str) -> dict[str, click.Option]:
    command = command_of(name)
    parameters = command.get_params(click.Context(command))
    return {str(one.name): one for one in parameters if isinstance(one, click.Option)}


def flags_in(text: str) -> list[str]:
    """Return the long flags that a help lists, without those in its texts."""
    listed = re.findall(r"^  (-\S+.*?)(?:   ?\S|$)", text.split("\nExamples:")[0], re.M)
    return [flag for line in listed for flag in re.findall(r"--[a-z][a-z0-9-]*", line)]


def test_the_commands_with_common_options_are_those_with_a_flag_per_setting() -> None:
    modules = [name for name in COMMANDS if name not in ("average-checkpoints", "import", "trees")]
    recipes = {name for name in modules if isinstance(command_of(name), RecipeCommand)}
    assert recipes == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_help_is_one_screen(name: str) -> None:
    lines = output(name, "--help").rstrip("\n").split("\n")
    assert len(lines) <= HEIGHT
    examples = lines.index("Examples:")
    # Examples are verbatim, in lines of any length.
    assert all(len(line) <= WIDTH for line in [*lines[:examples], lines[-1]])


@pytest.mark.parametrize("name", RECIPES)
def test_help_shows_the_common_settings_and_counts_the_others(name: str) -> None:
    text, options = output(name, "--help"), options_of(name)
    fields = fields_of(RECIPES[name])
    shown = flags_in(text)
    common = {
        one.flag for one in fields.values() if one.is_common and name in (one.common_in or [name])
    }
    assert {one.flag for one in fields.values()}.intersection(shown) == common
    assert "--config" in shown
    num_further = len(options) - len(shown) - len(("--help", "--help-all"))
    last = f"nmtkit {name} --help-all shows {num_further} further options."
    assert text.endswith(f"\n\n{last}\n")


@pytest.mark.parametrize("name", RECIPES)
def test_help_shows_all_required_options(name: str) -> None:
    required = {one.opts[0] for one in options_of(name).values() if "[required]" in str(one.help)}
    first = {*flags_in(output(name, "--help"))[: len(required)]}
    assert required <= first


@pytest.mark.parametrize("name", RECIPES)
def test_no_text_of_help_is_truncated(name: str) -> None:
    text = output(name, "--help").split("Options:")[1].split("Examples:")[0]
    for opening, closing in ("()", "[]"):
        assert text.count(opening) == text.count(closing)


@pytest.mark.parametrize("name", RECIPES)
def test_help_all_shows_every_flag_and_completion_offers_it(name: str) -> None:
    options = options_of(name).values()
    flags = {flag for one in options for flag in (*one.opts, *one.secondary_opts) if "--" in flag}
    assert set(flags_in(output(name, "--help-all"))) == flags
    complete = ShellComplete(command_of(name), {}, name, "_PROBE")
    offered = {item.value for item in complete.get_completions([], "--")}
    assert {one.opts[-1] for one in options if "--" in one.opts[-1]} <= offered


def test_help_all_lists_own_options_then_topics_then_verbatim_examples() -> None:
    @recipe_command("probe", ScoreRecipe, "probe | tail \\\n    --lines 1\n\n# another")
    @click.option("--own", help="Its own.")
    def command(recipe: ScoreRecipe, own: str) -> None:
        """Probe."""

    text = CliRunner().invoke(command, ["--help-all"]).stdout
    parts = ["Probe.", "Options:", "--own", "--help-all", "--debug", "-h, --help"]
    parts += ["Configuration:", "--config", "Metrics against a reference:", "--metric"]
    parts += ["Device:", "--device", "Examples:"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.endswith("Examples:\n  probe | tail \\\n      --lines 1\n\n  # another\n")


def test_help_leaves_out_defaults_that_are_0_or_off_and_details() -> None:
    text = " ".join(output("train", "--help").split())
    assert "this much training time. --schedule" in text
    assert "Batch size per update, over all devices. [default: 25,000 tokens]" in text
    assert "one process per device. [default: auto]" in text
