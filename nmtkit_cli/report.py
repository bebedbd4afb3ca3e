"""`nmtkit report`."""

from pathlib import Path

import click

from nmtkit_cli.command import FOLDER, Command
from nmtkit_cli.output_options import OutputFile, output_options
from nmtkit_cli.streams import write_report

EXAMPLES = """\
nmtkit report run/

# results, differences and curves of two runs, for a browser
nmtkit report baseline/ more-dropout/ --html report.html"""


@click.command("report", cls=Command, epilog=EXAMPLES)
@click.argument("runs", type=FOLDER, metavar="RUN...", nargs=-1, required=True)
@output_options("--html", "page", "Also write the report as an HTML file with plots.")
@click.option("--paper", is_flag=True, help="Add costs, and the runs to the paper's table 2.")
def command(runs: tuple[Path, ...], page: OutputFile | None, paper: bool) -> None:
    """Compare training runs, finished or not.

    Prints Markdown: a verdict, which run is better and whether that may be chance, and tables of
    results, of warnings, of the settings in which the runs differ, and of nll and scores of the
    validation set by update. A single run works too.
    """
    from nmtkit.reporting.report import markdown_of, report_on, write_page
    from nmtkit.reporting.runs import read_runs

    report = report_on(read_runs(runs), paper)
    if page is not None:
        write_page(report, page.path, page.overwrite)
    write_report(markdown_of(report))
