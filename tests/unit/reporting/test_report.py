import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.reporting.report import (
    MAX_POINTS,
    Report,
    figures,
    markdown_of,
    report_on,
    thinned,
    write_page,
)
from nmtkit.reporting.run_tables import split_evenly
from nmtkit.reporting.runs import Run
from nmtkit.reporting.svg import Plot
from nmtkit.version import __version__
from tests.folders import names_in
from tests.messages import refuses
from tests.unit.reporting.builders import run_of, training, validated, validation

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


def test_a_link_is_replaced_by_the_page_only_with_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.symlink_to(tmp_path / "missing")
    with refuses(ConfigError, "report.html; --overwrite"):
        write_page(REPORT, path, overwrite=False)
    assert names_in(tmp_path) == ["report.html"]
    write_page(REPORT, path, overwrite=True)
    assert path.read_bytes().startswith(b"<!DOCTYPE html>")
    assert names_in(tmp_path) == ["report.html"]


def test_a_report_depends_on_its_runs_only(tmp_path: Path) -> None:
    for name in ("first", "second"):
        report = report_on([replace(run) for run in RUNS], with_paper=True)
        write_page(report, tmp_path / name, overwrite=False)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


HEIGHTS = st.lists(st.floats(), max_size=300)
LIMITS = st.integers(5, 100)


def plots(runs: Sequence[Run], axis: str = "updates") -> list[Plot]:
    return [figure[axis] for figure in figures(runs)]


def test_training_loss_dev_nll_bleu_speed_and_learning_rate_are_drawn() -> None:
    run = run_of("a", validated([3.0, 2.0], [None, 20.0]))
    drawn = {plot.title.split(",")[0]: plot for plot in plots([run])}
    assert list(drawn) == ["Training loss", "Dev nll", "Dev BLEU", "Speed", "Learning rate"]
    updates = [record.update for record in run.training]
    (loss,), (speed,), (rate,) = (
        drawn[name].curves for name in ("Training loss", "Speed", "Learning rate")
    )
    assert loss.points == [(update, 4.0) for update in updates]
    assert speed.points == [(update, 1000.0) for update in updates]
    assert rate.points == [(update, 1e-4) for update in updates]
    assert drawn["Dev nll"].curves[0].points == [(100, 3.0), (200, 2.0)]
    assert drawn["Dev BLEU"].curves[0].finite == [(200, 20.0)]
    assert [plot.title.split(",")[0] for plot in plots([run]) if plot.from_zero] == [
        "Speed",
        "Learning rate",
    ]


def test_curves_are_the_same_over_updates_time_and_tokens() -> None:
    # A record per 100 updates; each of them is of 100 tokens, and ends at as many seconds.
    slow = replace(run_of("a"), validations=[validation(250, 3.0), validation(2000, 2.0)])
    fast = replace(slow, name="b", training=[replace(one, elapsed_s=60.0) for one in slow.training])
    for number, name in ((0, "Training loss"), (1, "Dev nll")):
        by_update, by_time, by_tokens = figures([slow, fast])[number].values()
        assert by_update.title.startswith(name)
        heights = [y for _, y in by_update.curves[0].points]
        for plot in (by_update, by_time, by_tokens):
            assert [[y for _, y in curve.points] for curve in plot.curves] == [heights] * 2
        assert (by_update.x_label, by_time.x_label) == ("updates", "minutes")
        assert by_tokens.x_label == "thousand tokens"
        updates = [x for x, _ in by_update.curves[0].points]
        # A validation after the last record is drawn at it.
        ends = [min(update, 1000) for update in updates]
        assert [x for x, _ in by_time.curves[0].points] == pytest.approx([u / 60 for u in ends])
        assert [x for x, _ in by_tokens.curves[1].points] == pytest.approx([u / 1000 for u in ends])
        assert {x for x, _ in by_time.curves[1].points} == {1.0}


@pytest.mark.parametrize(
    ("seconds", "unit", "expected"),
    [(50.0, "seconds", 50.0), (60.0, "minutes", 1.0), (3599.0, "minutes", 3599 / 60),
     (3600.0, "hours", 1.0), (360000.0, "hours", 100.0)],
)  # fmt: skip
def test_the_unit_is_the_largest_that_a_run_has_reached(
    seconds: float, unit: str, expected: float
) -> None:
    run = replace(run_of(), training=[replace(training(1), elapsed_s=seconds)])
    (plot, *_) = plots([run], "time")
    assert (plot.x_label, plot.curves[0].points[0][0]) == (unit, expected)


def test_a_validation_before_the_first_record_lies_between_zero_and_it() -> None:
    run = replace(run_of(), validations=[validation(0, 9.0), validation(25, 8.0)])
    seconds = [60 * x for x, _ in plots([run], "time")[1].curves[0].points]
    assert seconds == pytest.approx([0, 25])


def test_the_title_of_a_plot_says_that_its_curves_do_not_compare() -> None:
    first = run_of("a", validated([3.0], [20.0]))
    other = replace(first, name="b", codec="another")
    marked = {
        plot.title.split(",")[0] for plot in plots([first, other]) if "not comp" in plot.title
    }
    assert marked == {"Training loss", "Dev nll"}


def test_plots_without_points_are_left_out() -> None:
    infinite = replace(run_of(), training=[training(1, math.inf)])
    assert [plot.title.split(",")[0] for plot in plots([infinite])] == ["Speed", "Learning rate"]


def test_long_curves_are_thinned() -> None:
    run = replace(run_of(), training=[training(update) for update in range(1, 5000)])
    sizes = [len(plot.curves[0].points) for plot in plots([run])]
    assert max(sizes) <= MAX_POINTS == 500


def points_of(heights: list[float]) -> list[tuple[float, float]]:
    return list(enumerate(heights))


@given(st.lists(st.integers()), st.integers(1, 20))
def test_an_even_split_keeps_all_items_in_order_and_balances_sizes(
    items: list[int], count: int
) -> None:
    parts = split_evenly(items, count)
    assert [item for part in parts for item in part] == items
    sizes = [len(part) for part in parts]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1


@given(HEIGHTS, LIMITS)
def test_a_thinned_curve_is_a_short_subsequence(heights: list[float], limit: int) -> None:
    kept = [update for update, _ in thinned(points_of(heights), limit)]
    assert len(kept) <= limit
    assert all(earlier < later for earlier, later in pairwise(kept))
    assert set(kept) <= set(range(len(heights)))


@given(HEIGHTS, LIMITS)
def test_a_thinned_curve_keeps_its_ends_and_its_extremes(heights: list[float], limit: int) -> None:
    points = points_of(heights)
    kept = thinned(points, limit)
    assert list(kept[:1]) == points[:1]
    assert list(kept[-1:]) == points[-1:]
    finite = [height for height in heights if math.isfinite(height)]
    if finite:
        heights_kept = {height for _, height in kept}
        assert {min(finite), max(finite)} <= heights_kept


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=300), st.data(), LIMITS)
def test_a_thinned_curve_keeps_its_gaps(
    heights: list[float], data: st.DataObject, limit: int
) -> None:
    heights[data.draw(st.integers(0, len(heights) - 1))] = math.nan
    assert any(math.isnan(height) for _, height in thinned(points_of(heights), limit))


@given(HEIGHTS)
def test_a_short_curve_is_not_thinned(heights: list[float]) -> None:
    points = points_of(heights)
    assert thinned(points, len(points)) is points
