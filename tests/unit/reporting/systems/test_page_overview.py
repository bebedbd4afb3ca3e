from dataclasses import replace
from xml.etree import ElementTree

import pytest

from nmtkit.evaluation.evaluate import Evaluation
from nmtkit.evaluation.metric import Interval, Score
from nmtkit.reporting.systems.page import overview
from tests.unit.reporting.builders import HOSTILE

LABELS = ["first", "second", "third"]
LENGTHS = [1.0, 0.95, 1.1234]
BLEU = [
    Score("BLEU", True, 20.0, "s", "", Interval(20.5, 1.0)),
    Score("BLEU", True, 22.0, "s", "", Interval(22.0, 2.0), 0.01),
    Score("BLEU", True, 19.0, "s", "", Interval(19.0, 0.5), 0.2),
]
TER = [
    Score("TER", False, 60.0, "s", ""),
    Score("TER", False, 58.5, "s", "", None, 0.0499),
    Score("TER", False, 70.0, "s", "", None, 0.001),
]


def evaluation(*scores: list[Score]) -> Evaluation:
    return Evaluation(["a/first", HOSTILE, "third"], scores, [], [[] for _ in scores], [])


def rows_of(*scores: list[Score]) -> list[list[str]]:
    """Return the texts of the cells, header first."""
    table = ElementTree.fromstring(overview(evaluation(*scores), LABELS, LENGTHS))
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_each_metric_has_a_strip_a_score_and_a_p_value() -> None:
    assert rows_of(BLEU, TER) == [
        ["system", "BLEU higher is better", "p", "TER lower is better", "p", "length"],
        ["first", "", "20.00 \u00b1 1.00", "-", "", "60.00", "-", "1.000"],
        ["second", "", "22.00 \u00b1 2.00", "\u25b2 0.0100", "", "58.50", "\u25b2 0.0499", "0.950"],
        ["third", "", "19.00 \u00b1 0.50", "0.2000", "", "70.00", "\u25bc 0.0010", "1.123"],
    ]


def test_the_best_score_is_bold_and_a_single_one_is_not() -> None:
    table = ElementTree.fromstring(overview(evaluation(BLEU, TER), LABELS, LENGTHS))
    assert [one.text for one in table.iter("strong")] == ["22.00", "58.50"]
    alone = replace(evaluation(BLEU[:1]), systems=["first"])
    assert "<strong>" not in overview(alone, ["first"], [1.0])


def test_a_strip_has_the_score_as_a_dot_and_the_interval_as_a_line() -> None:
    table = ElementTree.fromstring(overview(evaluation(BLEU), LABELS, LENGTHS))
    places = {}
    for label, strip in zip(LABELS, table.iter("svg"), strict=True):
        (dot,) = strip.iter("circle")
        (line,) = (one for one in strip.iter("path") if one.attrib["class"] == "interval")
        start, end = line.attrib["d"].removeprefix("M").split(",10.0 H")
        places[label] = (float(start), float(dot.attrib["cx"]), float(end))
    # One axis: 18.5 to 24, so a point of BLEU has the same length everywhere.
    unit = (places["second"][2] - places["second"][0]) / 4
    assert places["third"][2] - places["third"][0] == pytest.approx(unit, abs=0.2)  # rounded
    assert places["second"][1] - places["first"][1] == pytest.approx(2 * unit, abs=0.2)
    assert places["first"][1] - places["first"][0] == pytest.approx(0.5 * unit, abs=0.2)
    assert all(0 <= place <= 120 for ends in places.values() for place in ends)


def test_names_of_files_are_titles_whatever_they_contain() -> None:
    table = ElementTree.fromstring(overview(evaluation(BLEU), ["x", HOSTILE, "z"], LENGTHS))
    titles = [one.attrib["title"] for one in table.iter("th") if "title" in one.attrib]
    assert titles == ["a/first", HOSTILE, "third"]
    assert [one.text for one in table.iter("span") if one.get("class") == "name"][1] == HOSTILE
