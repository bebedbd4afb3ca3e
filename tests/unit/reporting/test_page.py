import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.reporting.attention.view import page as attention_page
from nmtkit.reporting.page import (
    Cell,
    Section,
    Table,
    check_is_free,
    embedded,
    markdown,
    package_file,
    page,
    policy,
    write_page,
)
from nmtkit.reporting.page import page as report_page
from nmtkit.reporting.report import X_AXES
from nmtkit.reporting.svg import Curve, Plot
from nmtkit.reporting.systems.page import page as systems_page
from tests.messages import refuses
from tests.unit.reporting.builders import HOSTILE, Elements
from tests.unit.reporting.systems.builders import comparison

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
    assert {*found.names}.isdisjoint({"link", "img", "iframe", "object", "image", "use", "a"})
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
    assert {*Elements(HOSTILE_PAGE).names} <= {*Elements(PAGE).names}
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


TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12)


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def test_the_columns_of_a_table_are_aligned_and_the_best_are_bold() -> None:
    table = Table(["run", "updates"], [[Cell("base"), Cell("9")], [Cell("b"), Cell("100", True)]])
    assert markdown([Section("Summary", table, ["one", "two"]), Section("Rest", None, [])]) == [
        "## Summary",
        "",
        "| run  | updates |",
        "| ---- | ------: |",
        "| base |       9 |",
        "| b    | **100** |",
        "",
        "- one",
        "- two",
        "",
        "## Rest",
    ]


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4))
def test_any_text_of_a_cell_is_read_back(rows: list[tuple[str, str, str]]) -> None:
    table = Table(rows[0], [[Cell(text) for text in row] for row in rows[1:]])
    lines = markdown([Section("Any", table, [])])[2:]
    assert len({len(line) for line in lines}) == 1
    read = [re.split(r"(?<!\\)\|", line.replace(r"\\", "\0"))[1:-1] for line in lines]
    del read[1]
    texts = [[unescaped(cell).replace("\0", "\\").strip() for cell in row] for row in read]
    assert texts == [[text.strip() for text in row] for row in rows]


def test_markdown_characters_are_escaped() -> None:
    (*_, line) = markdown([Section("Any", None, [HOSTILE])])
    assert unescaped(line) == f"- {HOSTILE}"
    assert not set(re.sub(r"\\.", "", line)) & set("<>`*[]&_")


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_style_and_the_script_by_their_hashes() -> None:
    style, script = "a", "b\n"
    assert policy(style, script) == (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'"
    )


pages = pytest.mark.parametrize(
    "text",
    [
        attention_page("title", {}, []),
        report_page("title", "verdict", "", [], [], []),
        systems_page(comparison()),
    ],
    ids=["attention", "report", "systems"],
)


@pages
def test_every_colour_is_given_for_light_and_for_dark(text: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    parts = re.split(r"@media \(prefers-color-scheme: dark\) \{((?:[^{}]*\{[^{}]*\})*\s*)\}", style)
    light, dark = (
        re.findall(r"(--[\w-]+|\.[\w-]+ \{ color): #[0-9a-f]{6}", "".join(part))
        for part in (parts[::2], parts[1::2])
    )
    assert sorted(light) == sorted(dark)
    assert {"--page", "--text"} <= set(re.findall(r"var\((--[\w-]+)", style)) <= {*light, "--own"}


@pages
def test_the_policy_of_a_page_permits_its_own_style_and_script(text: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (found,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="(.*?)"/>', text)
    assert found.replace("&#x27;", "'") == policy(style, script)
    assert package_file("nmtkit.reporting", "base.css") in style


@given(st.lists(st.text()))
def test_embedded_json_is_read_back_from_html_and_from_xml(texts: list[str]) -> None:
    data = embedded(texts)
    assert json.loads(data) == texts
    assert not set("<>&") & set(data)
    read = ElementTree.fromstring(f"<script>{data}</script>").text
    assert json.loads(read or "") == texts


def test_characters_that_a_page_cannot_hold_are_escaped() -> None:
    text = "</script>]]>&\u2028\x85\uffff\ufeff"
    escaped = r'"\u003c/script\u003e]]\u003e\u0026\u2028\u0085\uffff\ufeff"'
    assert embedded(text) == escaped


def test_a_page_is_written_with_its_folder_and_never_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    check_is_free(path, overwrite=False)
    write_page(path, "\u00e4")
    assert path.read_bytes() == b"\xc3\xa4"
    check_is_free(path, overwrite=True)
    with refuses(ConfigError, "page.html; --overwrite"):
        check_is_free(path, overwrite=False)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files_is_named() -> None:
    with refuses(ConfigError, "/proc/page.html"):
        write_page(Path("/proc/page.html"), "")
