from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmtkit.errors import ConfigError
from nmtkit.reporting.report import Report, markdown_of, report_on, write_page
from nmtkit.version import __version__
from tests.messages import refuses
from tests.unit.reporting.builders import run_of, validated

RUNS = [
    run_of("base", validated([3.0, 2.0], [10.0, 20.0])),
    run_of("wide", validated([3.5, 2.5], [9.0, 21.0]), {"model_size": 1024}),
]
REPORT = report_on(RUNS, with_paper=True)
TABLE_2 = "The paper's table 2"
TITLES = [
    "Summary", "Warnings", "Settings that differ", "Validations", "Machine and data", TABLE_2
]  # fmt: skip


def titles(report: Report) -> list[str]:
    return [line.removeprefix("## ") for line in markdown_of(report) if line.startswith("## ")]


def test_a_report_on_one_run_has_no_settings_table_and_the_paper_s_on_request() -> None:
    assert titles(REPORT) == TITLES
    assert titles(report_on(RUNS, with_paper=False)) == TITLES[:-1]
    of_one = ["Summary", "Warnings", "Validations", "Machine and data"]
    assert titles(report_on(RUNS[:1], with_paper=False)) == of_one
    assert titles(report_on(RUNS[:1], with_paper=True)) == [*of_one, TABLE_2]


def test_a_page_has_the_same_text_as_the_markdown(tmp_path: Path) -> None:
    write_page(REPORT, tmp_path / "report.html", overwrite=False)
    root = ElementTree.fromstring((tmp_path / "report.html").read_text("utf-8"))
    assert root.findtext("body/h1") == "Training of base, wide"
    first, second = (one.text for one in root.findall("body/p"))
    assert second == REPORT.verdict
    assert first == f"started 2026-01-31 \u00b7 nmtkit {__version__}"
    assert [element.text for element in root.iter("h2")] == [*TITLES[:2], "Curves", *TITLES[2:]]
    cells = {"".join(cell.itertext()) for cell in root.iter("td")}
    for line in markdown_of(REPORT):
        if line.startswith("| ") and not line.startswith(
            ("| run", "| setting", "| update", "| model", "|  ", "| -")
        ):
            assert {cell.strip(" *") for cell in line.strip("|").split("|")} <= cells
    assert len(list(root.iter("figure"))) == 5


@pytest.mark.parametrize(("name", "place"), [("x" * 300, "x" * 300), ("file/a.html", "file")])
def test_an_impossible_page_path_is_refused(name: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refuses(ConfigError, tmp_path / place):
        write_page(REPORT, tmp_path / name, overwrite=False)


def test_a_report_depends_on_its_runs_only(tmp_path: Path) -> None:
    for name in ("first", "second"):
        report = report_on([replace(run) for run in RUNS], with_paper=True)
        write_page(report, tmp_path / name, overwrite=False)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
