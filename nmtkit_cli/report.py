"""`nmtkit report`."""

from pathlib import Path

import click

from nmtkit_cli.command import FILE, FOLDER, Command
from nmtkit_cli.streams import write_lines

EXAMPLES = """\
nmtkit report run/

# what came of it, what differs, and the curves, to look at in a browser
nmtkit report baseline/ more-dropout/ --html report.html"""


@click.command("report", cls=Command, epilog=EXAMPLES)
@click.argument("runs", type=FOLDER, metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--html",
    "page",
    type=FILE,
    metavar="FILE",
    help="Also write the report as one HTML file, with plots.",
)
@click.option("--paper", is_flag=True, help="Add the paper's table 2, with the runs in it.")
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def command(runs: tuple[Path, ...], page: Path | None, paper: bool, overwrite: bool) -> None:
    """Compare training runs, finished or not.

    Prints tables in Markdown: what each run came to and what it cost, warnings, the settings in
    which the runs differ, and nll and scores of the validation set by update. One run will do.
    """
    if overwrite and page is None:
        raise click.UsageError("--overwrite has no effect without --html; leave it out")

    from nmtkit.reporting.report import markdown_of, report_on, write_page
    from nmtkit.reporting.runs import read_runs

    report = report_on(read_runs(runs), paper)
    if page is not None:
        write_page(report, page, overwrite)
    write_lines(markdown_of(report))
