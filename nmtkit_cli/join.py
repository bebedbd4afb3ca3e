"""`nmtkit join`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command
from nmtkit_cli.streams import say

EXAMPLES = """\
# after `nmtkit preprocess ... --shard 1/4 --out part-1`, and the same for 2/4, 3/4, 4/4
nmtkit join part-1 part-2 part-3 part-4 --out data/"""


@click.command("join", cls=Command, epilog=EXAMPLES)
@click.argument("parts", type=FOLDER, metavar="PART...", nargs=-1, required=True)
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    required=True,
    help="New folder for the dataset, on the file system of the parts.",
)
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(parts: tuple[Path, ...], out: Path, overwrite: bool) -> None:
    """Join the parts that `nmtkit preprocess --shard` made into a dataset.

    The dataset equals the one that preprocess makes on one machine. Nothing is copied: its files
    are hard links to the files of the parts, whose folders may be deleted afterwards.
    """
    from nmtkit.data.joining import join

    join(parts, out, overwrite, say)
