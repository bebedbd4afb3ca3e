from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nmtkit_cli.output_options import OutputFile, output_options


def run(*arguments: str) -> tuple[int, str]:
    """Return the exit code, and what a command with both options prints."""

    @click.command()
    @output_options("--html", "page", "Write a page.")
    def command(page: OutputFile | None) -> None:
        click.echo(repr(page))

    result = CliRunner().invoke(command, arguments)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        ([], None),
        (["--html", "a.html"], OutputFile(Path("a.html"), overwrite=False)),
        (["--html", "a.html", "--overwrite"], OutputFile(Path("a.html"), overwrite=True)),
        (["--overwrite", "--html", "a.html"], OutputFile(Path("a.html"), overwrite=True)),
    ],
)
def test_both_options_are_one_parameter(arguments: list[str], page: OutputFile | None) -> None:
    assert run(*arguments) == (0, f"{page!r}\n")


def test_overwrite_without_a_page_is_refused() -> None:
    code, output = run("--overwrite")
    assert code == 2
    assert "--overwrite has no effect without --html; leave it out" in output
