"""`nmtkit report`."""

from pathlib import Path

import click

from nmtkit_cli.command import FILE, FOLDER, Command
from nmtkit_cli.streams import write_lines

EXAMPLES = """\
nmtkit report run/

# results, differences and curves of two runs, for a browser
nmtkit report baseline/ more-dropout/ --html report.html"""


@click.command("report", cls=Command, epilog=EXAMPLES)
@click.argument("runs", type=FOLDER, metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--html",
    "page",
    type=FILE,
    metavar="FILE",
    help="Also write the report as an HTML file with plots.",
)
@click.option("--paper", is_flag=True, help="Add the runs to the paper's table 2.")
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def command(runs: tuple[Path, ...], page: Path | None, paper: bool, overwrite: bool) -> None:
    """Compare training runs, finished or not.

    Prints Markdown tables: results and cost of each run, warnings, the settings in which the runs
    differ, and nll and scores of the validation set by update. A single run works too.
    """
    if overwrite and page is None:
        raise click.UsageError("--overwrite has no effect without --html; leave it out")

    from nmtkit.reporting.report import markdown_of, report_on, write_page
    from nmtkit.reporting.runs import read_runs

    report = report_on(read_runs(runs), paper)
    if page is not None:
        write_page(report, page, overwrite)
    write_lines(markdown_of(report))
