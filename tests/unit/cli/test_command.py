import click
from click.testing import CliRunner

from nmtkit_cli.command import Command, at_least_one, given_one
from tests.messages import refuses

EXAMPLES = """\
probe | tail \\
    --lines 1

# another"""


def probe() -> Command:
    @click.command("probe", cls=Command, epilog=EXAMPLES)
    @click.option("--own", help="Its own.")
    def command(own: str) -> None:
        """Probe."""

    assert isinstance(command, Command)
    return command


def test_help_lists_own_options_first_then_verbatim_examples() -> None:
    text = CliRunner().invoke(probe(), ["--help"]).stdout
    parts = ["Probe.", "Options:", "--own", "--debug", "--help"]
    places = [text.index(part) for part in [*parts, "Examples:"]]
    assert places == sorted(places)
    assert text.endswith("Examples:\n  probe | tail \\\n      --lines 1\n\n  # another\n")


def test_a_count_is_at_least_one_or_not_given() -> None:
    command = probe()
    context, option = click.Context(command), command.params[0]
    assert [at_least_one(context, option, number) for number in (None, 1, 7)] == [None, 1, 7]
    for number in (0, -1):
        with refuses(click.BadParameter, f"{number} 1", recorded=False):
            at_least_one(context, option, number)


def test_at_most_one_of_exclusive_options_is_accepted() -> None:
    assert given_one({"--one": None, "--two": None}) is None
    assert given_one({"--one": None, "--two": 2}) == "--two"
    with refuses(click.UsageError, "--one --three; one"):
        given_one({"--one": 1, "--two": None, "--three": 3})
