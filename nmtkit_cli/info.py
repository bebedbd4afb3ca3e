"""`nmtkit info`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command
from nmtkit_cli.streams import write_lines

EXAMPLES = """\
# what became of the text that a dataset was made of
nmtkit info data/

# is it still what was written?
nmtkit info data/ --check"""


@click.command("info", cls=Command, epilog=EXAMPLES)
@click.argument("data", type=FOLDER)
@click.option("--check", is_flag=True, help="Compare every file with its hash.")
def command(data: Path, check: bool) -> None:
    """Tell what a dataset holds: pairs read and dropped, by reason; tokens; examples.

    Prints the table that preprocess ended with, and for each reason some of the pairs that were
    dropped for it, with the numbers of their lines.
    """
    from nmtkit.data.info import describe

    write_lines(describe(data, check))
