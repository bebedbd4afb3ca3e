"""`nmtkit average-checkpoints`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command, at_least_one
from nmtkit_cli.streams import counted, say

EXAMPLES = """\
# the newest five that --save-every made
nmtkit average-checkpoints run/ --last 5 --out model/

# these
nmtkit average-checkpoints run/checkpoints/00003000 run/checkpoints/00004000 --out model/"""


@click.command("average-checkpoints", cls=Command, epilog=EXAMPLES)
@click.argument("folders", type=FOLDER, metavar="RUN_OR_CHECKPOINTS...", nargs=-1, required=True)
@click.option(
    "--last",
    type=int,
    callback=at_least_one,
    metavar="NUMBER",
    help="Take this many of the newest checkpoints of a run; else name the checkpoints.",
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    required=True,
    help="New folder for the model.",
)
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(folders: tuple[Path, ...], last: int | None, out: Path, overwrite: bool) -> None:
    """Average checkpoints into one model.

    The mean of the weights of a run's last checkpoints translates better than the newest of them
    alone. The model's folder is complete: it holds weights, configuration and vocabulary.
    """
    if last is not None and len(folders) > 1:
        raise click.UsageError("--last takes one run; leave --last out to average checkpoints")

    from nmtkit.averaging import average, last_checkpoints

    chosen = folders if last is None else last_checkpoints(folders[0], last)
    average(chosen, out, overwrite)
    say(f"averaged {counted(len(chosen), 'checkpoints')} into {out}")
