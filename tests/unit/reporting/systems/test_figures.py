from xml.etree import ElementTree

from nmtkit.reporting.document import Cell
from nmtkit.reporting.systems.figures import figure_element, frequency_figure, length_figures
from tests.unit.reporting.systems.builders import comparison

LABELS = ["good", "poor", "middling"]


def test_scores_by_length_are_a_plot_and_a_table_per_metric() -> None:
    compared = comparison()
    bleu, ter = length_figures(compared, LABELS)
    assert bleu.plot.title == "BLEU by sentence length"
    assert ter.plot.title == "TER by sentence length, lower is better"
    assert bleu.plot.categories == ["1-10", "11-20"]
    assert [curve.name for curve in bleu.plot.curves] == LABELS
    for number, curve in enumerate(ter.plot.curves):
        of_classes = compared.length_scores[1]
        expected = [(place, scores[number].score) for place, scores in enumerate(of_classes)]
        assert curve.points == expected
    assert ter.table.headers == ["words of the reference", "sentences", *LABELS]
    last = ter.table.rows[1]
    assert last[:3] == [Cell("11-20"), Cell("1"), Cell("0.00", is_best=True)]
    assert not last[3].is_best


def test_f1_by_frequency_leaves_out_classes_without_words() -> None:
    figure = frequency_figure(comparison(), LABELS)
    assert figure.plot.categories == ["1", "2", "4", "10-99"]
    assert figure.table.headers == ["occurrences", "words", *LABELS]
    assert [row[1].text for row in figure.table.rows] == ["10", "4", "4", "12"]


def test_a_single_system_has_no_best_value() -> None:
    figure = frequency_figure(comparison({"a": ["x y"]}, ["x y"]), ["a"])
    assert not any(cell.is_best for row in figure.table.rows for cell in row)


def test_a_figure_is_a_plot_a_readout_and_a_table() -> None:
    figure, _ = length_figures(comparison(), LABELS)
    element = ElementTree.fromstring(figure_element(figure))
    assert [one.tag for one in element] == ["svg", "output", "details"]
    ticks = [one.text for one in element.iter("text") if one.get("class") == "category"]
    assert ticks == ["1-10", "11-20"]


def test_a_reference_without_words_has_an_empty_table() -> None:
    figure = frequency_figure(comparison({"a": ["", ""]}, ["", ""], metric="chrf"), ["a"])
    element = ElementTree.fromstring(figure_element(figure))
    assert [one.tag for one in element] == ["details"]
    assert figure.table.rows == []
