import json
import re
from html.parser import HTMLParser

from nmtkit.reporting.attention.view import page
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence

FIRST_VIEW = {"word": HOSTILE, "heads": "<!--<script>\u2028"}
PAGE = page(HOSTILE, FIRST_VIEW, [example_sentence()])
NAMESPACE = "http://www.w3.org/2000/svg"
"""A name, which no browser asks for."""


class Elements(HTMLParser):
    """Reads as a browser does: which elements there are, with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self.found.append(("", {}, ""))  # what follows is not in the element any more

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def texts(self, tag: str) -> list[str]:
        return [text for name, _, text in self.found if name == tag]


def test_text_is_escaped() -> None:
    found = Elements(PAGE)
    assert {tag for tag, _, _ in found.found} == {
        tag for tag, _, _ in Elements(page("title", {}, [])).found
    }
    data, _ = found.texts("script")
    assert json.loads(data)["selection"] == FIRST_VIEW
    assert json.loads(data)["sentences"][0]["source"] == HOSTILE
    assert "<" not in data
    assert found.texts("h1")[0].strip() == f"Attention of {HOSTILE}"


def test_nothing_is_loaded() -> None:
    found = Elements(PAGE)
    names = {name for _, attributes, _ in found.found for name in attributes}
    assert names.isdisjoint({"src", "href", "srcset", "style"})
    assert not {name for name in names if name.startswith("on")}
    assert not re.search(
        r"https?:|url\(|@import|\bimport\b|fetch\(|innerHTML", PAGE.replace(NAMESPACE, "")
    )
