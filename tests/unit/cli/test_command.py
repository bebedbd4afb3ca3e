import click
import pytest
from click.testing import CliRunner

from nmtkit_cli.command import Command, Session, at_least_one

EXAMPLES = """\
probe | tail \\
    --lines 1

# another"""


def probe() -> Command:
    @click.command("probe", cls=Command, epilog=EXAMPLES)
    @click.option("--grouped", help="One of a group.")
    @click.option("--own", help="Its own.")
    def command(grouped: str, own: str) -> None:
        """Probe."""

    assert isinstance(command, Command)
    command.headings = {"grouped": "A group"}
    return command


def test_help_lists_own_options_first_then_groups_then_examples_as_typed() -> None:
    text = CliRunner().invoke(probe(), ["--help"]).stdout
    parts = ["Probe.", "Options:", "--own", "--debug", "--help", "A group:", "--grouped"]
    places = [text.index(part) for part in [*parts, "Examples:"]]
    assert places == sorted(places)
    assert text.endswith("Examples:\n  probe | tail \\\n      --lines 1\n\n  # another\n")


def test_debug_is_remembered_for_the_error_handler() -> None:
    for arguments, is_shown in ((["--debug"], True), ([], False)):
        session = Session()
        probe().make_context("probe", arguments, obj=session)
        assert session.shows_tracebacks is is_shown


def test_a_count_is_at_least_one_or_not_given() -> None:
    command = probe()
    context, option = click.Context(command), command.params[0]
    assert [at_least_one(context, option, number) for number in (None, 1, 7)] == [None, 1, 7]
    for number in (0, -1):
        with pytest.raises(click.BadParameter, match=f"{number} is less than 1"):
            at_least_one(context, option, number)
