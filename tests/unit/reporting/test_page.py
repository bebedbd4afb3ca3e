import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

from nmtkit.reporting.page import Cell, Section, Table, page
from nmtkit.reporting.report import X_AXES
from nmtkit.reporting.svg import Curve, Plot
from tests.unit.reporting.builders import HOSTILE

TABLE = Table(["run", "BLEU"], [[Cell("base"), Cell("26.0")], [Cell("big"), Cell("28.4", True)]])
SUMMARY, DETAILS = Section("Summary", TABLE, ["a note"]), Section("Details", None, ["none"])
LOSS = Plot("Loss", [Curve("base", [(100, 3.0), (200, 2.0)])], from_zero=False)

LOSSES = {"updates": LOSS, "time": replace(LOSS, x_label="hours")}

PAGE = page("Two runs", "The first wins.", "yesterday", [SUMMARY], [LOSSES], [DETAILS])
HOSTILE_PAGE = page(
    HOSTILE,
    HOSTILE,
    HOSTILE,
    [Section(HOSTILE, Table([HOSTILE, "x"], [[Cell(HOSTILE), Cell(HOSTILE, True)]]), [HOSTILE])],
    [{"updates": Plot(HOSTILE, [Curve(HOSTILE, [(100, 3.0)])], from_zero=False)}],
    [],
)
VOID = {"meta", "input"}


class Elements(HTMLParser):
    """Reads as a browser does: the elements, what they hold, and whether all are closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open += [] if tag in VOID else [tag]
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_well_formed_for_a_browser_and_as_xml() -> None:
    for text in (PAGE, HOSTILE_PAGE):
        assert Elements(text).open == []
        assert ElementTree.fromstring(text).tag == "html"


def test_a_page_has_its_sections_in_order_with_plots_between() -> None:
    places = [
        PAGE.index(text) for text in ("<h1>", "Summary", "<table>", "a note", "<svg", "Details")
    ]
    assert places == sorted(places)


def test_a_table_has_a_row_per_row_and_the_best_are_bold() -> None:
    root = ElementTree.fromstring(PAGE)
    rows = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    assert rows == [["run", "BLEU"], ["base", "26.0"], ["big", "28.4"]]
    assert [element.text for element in root.iter("strong")] == ["28.4"]


def test_nothing_is_loaded_and_only_the_pages_script_runs() -> None:
    assert not re.search(r"https?:|url\(|@import|\bimport\b|fetch\(|innerHTML", PAGE)
    found = Elements(HOSTILE_PAGE)
    assert found.names.isdisjoint({"link", "img", "iframe", "object", "image", "use", "a"})
    assert not {name for name in found.attributes if name.startswith("on")}
    assert found.attributes.isdisjoint({"src", "href", "srcset", "style"})
    assert HOSTILE_PAGE.count("<script") == 1


def test_the_reader_chooses_one_of_the_axes() -> None:
    root = ElementTree.fromstring(PAGE)
    names = [one.get("id") for one in root.iter("input")]
    assert names == [f"by-{axis}" for axis in X_AXES]
    assert [one.get("id") for one in root.iter("input") if one.get("checked")] == ["by-updates"]
    (figure,) = root.iter("figure")
    shown = {one.get("class"): one.find("svg") for one in figure}
    assert list(shown) == names[:2]
    labels = [svg.get("data-x") for svg in shown.values() if svg is not None]
    assert labels == ["updates", "hours"]


def test_text_is_escaped() -> None:
    assert Elements(HOSTILE_PAGE).names - Elements(PAGE).names == set()
    root = ElementTree.fromstring(HOSTILE_PAGE)
    for name, count in (
        ("title", 1),
        ("h1", 1),
        ("p", 2),
        ("h2", 2),
        ("th", 2),
        ("td", 2),
        ("li", 1),
    ):
        texts = ["".join(element.itertext()) for element in root.iter(name)]
        assert len(texts) == count, name
        assert HOSTILE in texts[0], name
