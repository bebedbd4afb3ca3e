"""The report on training runs, as Markdown or as an HTML page with plots.

The composition root of this folder: it chooses the sections, their order and the output format.
A module of its own: the command that imports it stays thin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.reporting import html
from nmtkit.reporting.curves import figures
from nmtkit.reporting.document import Section, markdown
from nmtkit.reporting.origins import dates_of, origins
from nmtkit.reporting.page import page
from nmtkit.reporting.paper import table2
from nmtkit.reporting.run_tables import samples, settings, summary, validations
from nmtkit.reporting.runs import Run
from nmtkit.reporting.warnings import warnings
from nmtkit.version import __version__


@dataclass(frozen=True)
class Report:
    """The sections of a report.

    Attributes:
        runs: the runs.
        overview: the sections before the plots.
        details: the sections after them.
    """

    runs: Sequence[Run]
    overview: Sequence[Section]
    details: Sequence[Section]


def report_on(runs: Sequence[Run], with_paper: bool) -> Report:
    """Compose the report on runs, at least one.

    Args:
        runs: the runs.
        with_paper: add the paper's table 2 at the end.
    """
    compared = [settings(runs)] if len(runs) > 1 else []
    paper = [table2(runs)] if with_paper else []
    details = [*compared, validations(runs), *samples(runs), *origins(runs), *paper]
    return Report(runs, [summary(runs), warnings(runs)], details)


def markdown_of(report: Report) -> list[str]:
    """Return a report without its plots as lines of Markdown."""
    return markdown([*report.overview, *report.details])


def write_page(report: Report, path: Path, overwrite: bool) -> None:
    """Write a report with its plots as an HTML file.

    Args:
        report: the report.
        path: the file; its folder is created if missing.
        overwrite: replace an existing file.

    Raises:
        ConfigError: the file exists and `overwrite` is off, or the path is impossible.
        ResourceError: the file cannot be written.
    """
    html.check_is_free(path, overwrite)
    title = f"Training of {', '.join(run.name for run in report.runs)}"
    dates = [f"started {one}" for one in [dates_of(report.runs)] if one]
    origin = " \u00b7 ".join([*dates, f"nmtkit {__version__}"])
    text = page(title, origin, report.overview, figures(report.runs), report.details)
    html.write_page(path, text)
