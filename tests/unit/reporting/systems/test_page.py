import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.metrics import SignificanceConfig
from nmtkit.evaluation.texts import Text
from nmtkit.reporting.systems.page import page
from tests.unit.reporting.builders import HOSTILE
from tests.unit.reporting.systems.builders import REFERENCE, SYSTEMS, comparison


class Scripts(HTMLParser):
    """Reads as a browser does: the elements, and the contents of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.names.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.names and self.names[-1] == "script" and self.scripts:
            self.scripts[-1] += data


def data_of(text: str) -> dict[str, object]:
    """Return the page's data, which HTML and XML read as the same."""
    from_html, _ = Scripts(text).scripts
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
    plain = Scripts(page(comparison())).names
    hostile = [HOSTILE, "]]></script><img src=x>", "<!--<script>", "&lt;\u2028\0\uffff\x85 \r"]
    systems = {f"{HOSTILE}{number}": hostile for number in range(3)}
    compared = comparison(systems, hostile, source=hostile)
    text = page(compared)
    assert Scripts(text).names.count("script") == plain.count("script") == 2
    assert "img" not in Scripts(text).names
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
