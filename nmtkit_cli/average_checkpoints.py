"""`nmtkit average-checkpoints`."""

from pathlib import Path

import click

from nmtkit.units import counted
from nmtkit_cli.command import FOLDER, PATH, Command, count_option, given_one
from nmtkit_cli.streams import say, say_opening, warn, work_reporter
from nmtkit_cli.text_paths import read_dataset

EXAMPLES = """\
# the newest that suit, compared with the best one; exactly the newest ten; these two
nmtkit average-checkpoints run/ --data data/ --out model/
nmtkit average-checkpoints run/ --last 10 --out model/
nmtkit average-checkpoints run/checkpoints/00003000 run/checkpoints/00004000 --out model/"""


@click.command("average-checkpoints", cls=Command, epilog=EXAMPLES)
@click.argument("folders", type=PATH, metavar="RUN_OR_CHECKPOINTS...", nargs=-1, required=True)
@count_option("--last", "Average exactly the newest N of --save-every, the one at the stop too.")
@count_option("--best", "Average the N checkpoints of a run that validated best.")
@click.option(
    "--data",
    type=PATH,
    callback=read_dataset,
    metavar="DATA",
    help="Dataset of the run: validate the mean and the best checkpoint, and print both.",
)
@click.option("--different-runs", is_flag=True, help="Average checkpoints of different runs.")
@click.option("--out", type=FOLDER, metavar="FOLDER", required=True, help="New model folder.")
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
def command(
    folders: tuple[Path, ...],
    last: int | None,
    best: int | None,
    data: Path | None,
    different_runs: bool,
    out: Path,
    overwrite: bool,
) -> None:
    """Average checkpoints into one model.

    The mean of a run's last checkpoints is usually better than the newest. It is a whole model.
    Of a run without --last or --best: the newest five at most, none from before half of the last
    update.
    """
    given_one({"--last": last, "--best": best})
    for name, value in {"--last": last, "--best": best, "--data": data}.items():
        if value is not None and len(folders) > 1:
            raise click.UsageError(f"{name} takes one run; leave {name} out to average checkpoints")
    from nmtkit.data.binary import FORMAT, VERSION
    from nmtkit.storage import model_description
    from nmtkit.storage.durable import check_is_free, read_manifest

    check_is_free(out, model_description.FORMAT, overwrite)
    if data:
        read_manifest(data, FORMAT, VERSION)
    say_opening(*folders)
    from nmtkit.averaging import average
    from nmtkit.storage.run_folder import is_run
    from nmtkit.training.selection import choose, compare_with_best, open_validation_set

    run, chosen = folders[0], list(folders)
    if last or best or (is_run(run) and len(folders) == 1):
        chosen = choose(run, last, best, say, warn)
    dataset = open_validation_set(run, chosen, data) if data else None
    average(chosen, out, overwrite, different_runs, work_reporter())
    say(f"averaged {counted(len(chosen), 'checkpoints')} into {out}")
    if dataset:
        compare_with_best(run, out, dataset, work_reporter())
