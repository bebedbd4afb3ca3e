"""`nmtkit average-checkpoints`."""

from pathlib import Path

import click

from nmtkit.units import counted
from nmtkit_cli.command import FOLDER, PATH, Command, count_option, given_one, read_counts
from nmtkit_cli.streams import say, warn, work_reporter

EXAMPLES = """\
# the newest five; the best number of newest ones; these two
nmtkit average-checkpoints run/ --last 5 --out model/
nmtkit average-checkpoints run/ --try 5,10,20 --data data/ --out model/
nmtkit average-checkpoints run/checkpoints/00003000 run/checkpoints/00004000 --out model/"""


@click.command("average-checkpoints", cls=Command, epilog=EXAMPLES)
@click.argument("folders", type=PATH, metavar="RUN_OR_CHECKPOINTS...", nargs=-1, required=True)
@count_option("--last", "Average the newest N checkpoints that --save-every made.")
@count_option("--best", "Average the N checkpoints of a run that validated best.")
@click.option(
    "--try",
    "counts",
    callback=read_counts,
    metavar="LIST",
    help="Validate --last with each number (5,10,20) on --data, and write the best mean.",
)
@click.option("--data", type=FOLDER, metavar="DATA", help="Dataset of the run, for --try.")
@click.option("--out", type=FOLDER, metavar="FOLDER", required=True, help="New model folder.")
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(
    folders: tuple[Path, ...],
    last: int | None,
    best: int | None,
    counts: list[int] | None,
    data: Path | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Average checkpoints into one model.

    The mean of a run's last checkpoints is usually better than the newest. It is a whole model.
    """
    if (way := given_one({"--last": last, "--best": best, "--try": counts})) and len(folders) > 1:
        raise click.UsageError(f"{way} takes one run; leave {way} out to average checkpoints")
    if (counts is None) != (data is None):
        raise click.UsageError("--try and --data go together; give both or neither")
    if counts:
        say(f"opening {folders[0]} on {data} (loading PyTorch)")
    from nmtkit.averaging import average
    from nmtkit.training.selection import average_best_count, best_checkpoints, last_checkpoints

    if counts and data:
        chosen = average_best_count(folders[0], counts, data, out, overwrite, work_reporter())
    else:
        chosen = last_checkpoints(folders[0], last) if last else folders
        chosen = best_checkpoints(folders[0], best, warn) if best else chosen
        average(chosen, out, {}, overwrite, work_reporter())
    say(f"averaged {counted(len(chosen), 'checkpoints')} into {out}")
