"""A report on training runs, as Markdown or as a page with plots."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.errors import ConfigError
from nmtkit.reporting.curves import plots
from nmtkit.reporting.document import Section, markdown
from nmtkit.reporting.page import page
from nmtkit.reporting.paper import table2
from nmtkit.reporting.run_tables import settings, summary, validations
from nmtkit.reporting.runs import Run
from nmtkit.reporting.warnings import warnings
from nmtkit.storage.disk_errors import disk_errors
from nmtkit.storage.durable import make_folder, replace_file


@dataclass(frozen=True)
class Report:
    """What there is to say of some runs.

    Attributes:
        runs: the runs.
        overview: sections that come first, before the curves where there are any.
        details: the other sections.
    """

    runs: Sequence[Run]
    overview: Sequence[Section]
    details: Sequence[Section]


def report_on(runs: Sequence[Run], with_paper: bool) -> Report:
    """Compose the report on some runs, at least one.

    Args:
        runs: the runs.
        with_paper: end with the paper's table 2.
    """
    compared = [settings(runs)] if len(runs) > 1 else []
    paper = [table2(runs)] if with_paper else []
    return Report(runs, [summary(runs), warnings(runs)], [*compared, validations(runs), *paper])


def markdown_of(report: Report) -> list[str]:
    """Return a report as lines of Markdown."""
    return markdown([*report.overview, *report.details])


def write_page(report: Report, path: Path, overwrite: bool) -> None:
    """Write a report with its curves as an HTML file.

    Args:
        report: the report.
        path: the file; its folder is made too.
        overwrite: replace a file that is there.

    Raises:
        ConfigError: the file exists and may not be replaced, or is not a possible path.
        ResourceError: it cannot be written.
    """
    parent = path.absolute().parent
    with disk_errors(path):
        if path.exists() and not overwrite:
            raise ConfigError(f"{path}: already exists; choose another name or add --overwrite")
        if not parent.is_dir():
            make_folder(parent)
    title = f"Training of {', '.join(run.name for run in report.runs)}"
    text = page(title, report.overview, plots(report.runs), report.details)
    replace_file(path, text.encode())
