from collections.abc import Mapping
from xml.etree import ElementTree

from nmtkit.evaluation.evaluate import Comparison
from nmtkit.reporting.page import Cell
from nmtkit.reporting.scores import Breakdown, breakdowns
from nmtkit.reporting.systems.page import figure
from tests.unit.reporting.systems.builders import comparison

LABELS = ["good", "poor", "middling"]


def parts(compared: Comparison) -> Mapping[str, Breakdown]:
    return {one.title: one for one in breakdowns(compared.evaluation)}


def test_scores_by_length_are_a_plot_and_a_table_per_metric() -> None:
    compared = comparison()
    ter = parts(compared)["TER by sentence length"]
    assert [name for name, _ in ter.classes] == ["1-10", "11-20"]
    expected = [
        [score.score for score in scores] for scores in compared.evaluation.length_scores[1]
    ]
    assert ter.values == expected
    element = ElementTree.fromstring(figure(ter, LABELS))
    assert [one.tag for one in element] == ["svg", "output", "details"]
    (title,) = (one.text for one in element.iter("text") if one.get("class") == "title")
    assert title == "TER by sentence length, lower is better"
    ticks = [one.text for one in element.iter("text") if one.get("class") == "category"]
    assert ticks == ["1-10", "11-20"]
    names = [one.get("data-name") for one in element.iter("g") if one.get("data-name")]
    assert names == LABELS
    table = ter.table(LABELS)
    assert table.headers == ["reference words", "sentences", *LABELS]
    last = table.rows[1]
    assert last[:3] == [Cell("11-20"), Cell("1"), Cell("0.00", is_best=True)]
    assert not last[3].is_best


def test_f1_by_frequency_leaves_out_classes_without_words() -> None:
    part = parts(comparison())["F1 of words by frequency"]
    assert part.classes == [("1", 10), ("2", 4), ("4", 4), ("10-99", 12)]
    table = part.table(LABELS)
    assert table.headers == ["occurrences", "words", *LABELS]
    assert [row[1].text for row in table.rows] == ["10", "4", "4", "12"]


def test_a_reference_without_words_has_an_empty_table() -> None:
    compared = comparison({"a": ["", ""]}, ["", ""], metric="chrf")
    part = parts(compared)["F1 of words by frequency"]
    element = ElementTree.fromstring(figure(part, ["a"]))
    assert [one.tag for one in element] == ["details"]
    assert part.table(["a"]).rows == []
