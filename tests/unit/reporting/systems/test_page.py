import json
import re
from collections.abc import Mapping
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.metrics import SignificanceConfig
from nmtkit.evaluation.breakdown import MIN_DIFFERENCE
from nmtkit.evaluation.evaluate import Comparison, Evaluation
from nmtkit.evaluation.metric import Interval, Score
from nmtkit.evaluation.texts import Text
from nmtkit.reporting.page import Cell
from nmtkit.reporting.scores import Breakdown, breakdowns
from nmtkit.reporting.systems.page import figure, overview, page, page_data, short_names
from tests.unit.reporting.builders import HOSTILE, Elements
from tests.unit.reporting.systems.builders import (
    GOOD,
    MIDDLING,
    POOR,
    REFERENCE,
    SYSTEMS,
    comparison,
)


def data_of(text: str) -> dict[str, object]:
    """Return the page's data, which HTML and XML read as the same."""
    from_html, _ = Elements(text).texts["script"]
    from_xml, _ = (one.text for one in ElementTree.fromstring(text).iter("script"))
    found: dict[str, object] = json.loads(from_html)
    assert found == json.loads(from_xml or "")
    return found


def test_a_page_is_well_formed_and_asks_for_nothing() -> None:
    text = page(comparison(significance=SignificanceConfig(paired_ar=True, trials=20)))
    root = ElementTree.fromstring(text)
    links = [key for one in root.iter() for key in one.attrib if key in ("src", "href", "style")]
    assert links == []
    assert len(list(root.iter("figure"))) == 3  # two metrics, and F1
    assert data_of(text)["systems"] == ["good", "poor", "middling"]


def test_texts_stay_texts_whatever_they_contain() -> None:
    plain = Elements(page(comparison())).names
    hostile = [HOSTILE, "]]></script><img src=x>", "<!--<script>", "&lt;\u2028\0\uffff\x85 \r"]
    systems = {f"{HOSTILE}{number}": hostile for number in range(3)}
    compared = comparison(systems, hostile, source=hostile)
    text = page(compared)
    assert Elements(text).names.count("script") == plain.count("script") == 2
    assert "img" not in Elements(text).names
    data = data_of(text)
    assert data["reference"] == data["source"] == hostile
    assert data["translations"] == [hostile] * 3


@given(st.lists(st.text().map(lambda text: text.replace("\n", " ")), min_size=1, max_size=4))
def test_any_text_is_read_back(lines: list[str]) -> None:
    data = data_of(page(comparison({"a": lines, "b": lines[::-1]}, lines, metric="chrf")))
    assert data["reference"] == lines
    assert data["translations"] == [lines, lines[::-1]]


@pytest.mark.parametrize("name", ["\ud800.de", "a\0b.de", "\x1b[31m", "<b>&.de"])
def test_any_file_name_can_be_written(name: str) -> None:
    compared = comparison(dict(zip([name, "other"], SYSTEMS.values(), strict=False)))
    texts = replace(compared.texts, references=[Text(name, REFERENCE)])
    page_text = page(replace(compared, texts=texts, counted_text=name))
    ElementTree.fromstring(page_text.encode())
    assert "<b>&" not in re.sub("<script.*?</script>", "", page_text, flags=re.DOTALL)


def test_texts_are_in_the_page_once() -> None:
    systems = {name: [f"{name}-{line}" for line in range(40)] for name in ("one", "two")}
    text = page(comparison(systems, [f"reference-{line}" for line in range(40)], metric="chrf"))
    assert text.count("one-39") == text.count("two-39") == text.count("reference-39") == 1


LABELS = ["good", "poor", "middling"]


def test_the_data_are_texts_and_numbers() -> None:
    compared = comparison()
    data = page_data(compared, LABELS)
    assert data["systems"] == LABELS
    assert (data["metric"], data["is_higher_better"]) == ("BLEU", True)
    assert data["reference"] == REFERENCE
    assert data["translations"] == [GOOD, POOR, MIDDLING]
    assert data["source"] is None
    rounded = [[round(one, 2) for one in scores] for scores in compared.line_scores]
    assert data["scores"] == rounded
    assert [data["lengths"][one] for one in data["length_of"]] == ["1-10", "1-10", "11-20", "1-10"]
    assert data["min_difference"] == MIN_DIFFERENCE


def test_an_ngram_has_its_matches_and_its_occurrences() -> None:
    data = page_data(comparison(), LABELS)
    assert ("so", 1, [12, 2, 6, 12]) in data["ngrams"]
    assert ("so so so so", 4, [9, 0, 3, 9]) in data["ngrams"]


def test_the_first_system_is_compared_with_the_best_other_one() -> None:
    def second(metric: str, *names: str) -> int:
        systems = {name: SYSTEMS[name] for name in names}
        found: int = page_data(comparison(systems, metric=metric), names)["second"]
        return found

    good, poor, middling = SYSTEMS
    assert second("bleu", good, poor, middling) == 2
    assert second("ter", good, poor, middling) == 2
    assert second("ter", poor, good, middling) == 1
    assert second("bleu", good) == 1, "the reference"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["baseline.de", "new.de"], ["baseline", "new"]),
        (["run1/out.de", "run2/out.de"], ["run1", "run2"]),
        (
            ["sys/newstest2017.FBK.4870.en-de.de.gz", "sys/newstest2017.online-A.0.en-de.de.gz"],
            ["FBK.4870", "online-A.0"],
        ),
        (["a.de", "a.b.de"], ["a", "a.b"]),
        (["out/model-8.txt", "out/model-10.txt"], ["model-8", "model-10"]),
        (["some/where/out.de.gz"], ["out.de.gz"]),
        (["standard input"], ["standard input"]),
        (["/dev/fd/63", "/dev/fd/62"], ["63", "62"]),
        (["a.de", "a.de"], ["a", "a"]),
        (["x\ud800.de", "y\0.de"], ["x\ufffd", "y\ufffd"]),
        (["-", "_"], ["-", "_"]),
    ],
)
def test_parts_that_all_names_share_are_left_out(names: list[str], expected: list[str]) -> None:
    assert short_names(names) == expected


@given(st.lists(st.text("ab./-_1", min_size=1, max_size=8), min_size=1, max_size=4, unique=True))
def test_short_names_differ_as_the_names_do_and_are_never_empty(names: list[str]) -> None:
    labels = short_names(names)
    assert len(set(labels)) == len(names)
    assert all(label in name for label, name in zip(labels, names, strict=True))
    assert all(labels)


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


NAMES = ["first", "second", "third"]
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
    table = ElementTree.fromstring(overview(evaluation(*scores), NAMES, LENGTHS))
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_each_metric_has_a_strip_a_score_and_a_p_value() -> None:
    assert rows_of(BLEU, TER) == [
        ["system", "BLEU higher is better", "p", "TER lower is better", "p", "length"],
        ["first", "", "20.00 \u00b1 1.00", "-", "", "60.00", "-", "1.000"],
        ["second", "", "22.00 \u00b1 2.00", "\u25b2 0.0100", "", "58.50", "\u25b2 0.0499", "0.950"],
        ["third", "", "19.00 \u00b1 0.50", "0.2000", "", "70.00", "\u25bc 0.0010", "1.123"],
    ]


def test_the_best_score_is_bold_and_a_single_one_is_not() -> None:
    table = ElementTree.fromstring(overview(evaluation(BLEU, TER), NAMES, LENGTHS))
    assert [one.text for one in table.iter("strong")] == ["22.00", "58.50"]
    alone = replace(evaluation(BLEU[:1]), systems=["first"])
    assert "<strong>" not in overview(alone, ["first"], [1.0])


def test_a_strip_has_the_score_as_a_dot_and_the_interval_as_a_line() -> None:
    table = ElementTree.fromstring(overview(evaluation(BLEU), NAMES, LENGTHS))
    places = {}
    for label, strip in zip(NAMES, table.iter("svg"), strict=True):
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
