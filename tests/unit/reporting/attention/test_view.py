import json
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmtkit.config.schema import AttentionRecipe, Value
from nmtkit.config.toml import build
from nmtkit.errors import ConfigError, DataError, NmtkitError
from nmtkit.reporting.attention import view
from nmtkit.reporting.attention.view import page
from nmtkit.storage.model_folder import LoadedModel
from tests.messages import refuses
from tests.tiny import never_warn
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence, tiny_loaded
from tests.unit.reporting.builders import Elements


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path, device: object) -> LoadedModel:
        assert (str(path), str(device)) == ("model", "cpu")
        return tiny_loaded()

    monkeypatch.setattr(view, "load_model", load)


def shown(lines: Iterable[str], **values: Value) -> list[bytes]:
    recipe = build(AttentionRecipe, {"device": "cpu", **values})
    return list(view.show(Path("model"), recipe, lines, "in", never_warn))


def data_of(page: bytes) -> dict[str, object]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page.decode())
    values: dict[str, object] = json.loads(text)
    return values


@pytest.mark.parametrize(
    ("values", "drawing"),
    [({}, "matrix"), ({"word": "b"}, "lines"), ({"drawing": "lines"}, "lines")],
)
def test_a_page_opens_on_the_mean_of_the_heads_unless_lines_are_wanted(
    values: dict[str, str], drawing: str
) -> None:
    selection = data_of(*shown(["a b"], **values))["selection"]
    assert isinstance(selection, dict)
    assert selection["drawing"] == drawing


def test_a_page_has_every_sentence_and_begins_with_the_selection() -> None:
    (page,) = shown(["a b\tA", "c\tC D", "e"], sentence=2, attention="memory", word="D", heads="2")
    data = data_of(page)
    assert data["selection"] == {
        "sentence": "2",
        "attention": "memory",
        "layer": "1",
        "heads": "2",
        "drawing": "lines",
        "between": "subwords",
        "word": "row-2",
    }
    sentences = data["sentences"]
    assert isinstance(sentences, list)
    assert [sentence["source"] for sentence in sentences] == ["a b", "c", "e"]
    assert [len(sentence["attentions"]) for sentence in sentences] == [3, 3, 1]


@pytest.mark.parametrize(
    ("line", "values", "kind"),
    [
        ("a", {}, "encoder"),
        ("a\tA", {}, "memory"),
        ("a", {"translate": True}, "memory"),
        ("a\tA", {"attention": "encoder"}, "encoder"),
    ],
)
def test_a_page_begins_with_cross_attention_if_there_is_a_translation(
    line: str, values: dict[str, Value], kind: str
) -> None:
    (page,) = shown([line], **values)
    selection = data_of(page)["selection"]
    assert isinstance(selection, dict)
    assert selection["attention"] == kind


def test_json_is_an_object_per_line_without_reading_ahead() -> None:
    lines = iter(["a", "b\tB", "c"])
    recipe = build(AttentionRecipe, {"device": "cpu", "format": "json"})
    parts = view.show(Path("model"), recipe, lines, "in", never_warn)
    first = next(parts)
    assert list(lines) == ["b\tB", "c"], "nothing is read ahead"
    assert first.endswith(b"}\n")
    assert json.loads(first)["source"] == "a"


def test_a_picture_shows_the_selected_sentence() -> None:
    lines = iter(["a\tb\tc", "c d", "e"])
    with refuses(DataError, "in:1 2"):
        shown(["a\tb\tc", "c d"], format="svg", sentence=2)
    lines = iter(["a", "c d", "e"])
    (svg,) = shown(lines, format="svg", sentence=2, drawing="matrix")
    root = ElementTree.fromstring(svg)
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-6:] == ["c", "d", "</s>"] * 2
    assert list(lines) == ["e"], "no more is read than is shown"


@pytest.mark.parametrize("form", ["html", "svg"])
@pytest.mark.parametrize(
    ("values", "lines", "kind", "keys"),
    [
        ({"sentence": 3}, ["a", "b"], ConfigError, "sentence 3 2; selection.sentence"),
        ({"sentence": 2}, ["a"], ConfigError, "sentence 2 1"),
        ({"layer": 3}, ["a"], ConfigError, "layer 3 2"),
        ({"attention": "memory"}, ["a"], ConfigError, "attention memory; --translate"),
        ({}, [], DataError, "in"),
    ],
)
def test_a_missing_selection_is_refused(
    form: str, values: dict[str, Value], lines: list[str], kind: type[NmtkitError], keys: str
) -> None:
    with refuses(kind, keys):
        shown(lines, format=form, **values)


def test_a_page_with_too_many_weights_is_refused_early() -> None:
    lines = iter(["a b", "a b", "a b", "a b"])
    with refuses(DataError, "in:3 3 108 100; --max-weights"):
        shown(lines, max_weights=100)
    assert len(list(lines)) == 1
    assert len(shown(["a b"] * 5, max_weights=100, format="json")) == 5, "of a line each"


FIRST_VIEW = {"word": HOSTILE, "heads": "<!--<script>\u2028"}
PAGE = page(HOSTILE, FIRST_VIEW, [example_sentence()])
NAMESPACE = "http://www.w3.org/2000/svg"
"""A name, which no browser asks for."""


def test_text_is_escaped() -> None:
    found = Elements(PAGE)
    assert {*found.names} == {*Elements(page("title", {}, [])).names}
    data, _ = found.texts["script"]
    assert json.loads(data)["selection"] == FIRST_VIEW
    assert json.loads(data)["sentences"][0]["source"] == HOSTILE
    assert "<" not in data
    assert found.texts["h1"][0].strip() == f"Attention of {HOSTILE}"


def test_nothing_is_loaded() -> None:
    found = Elements(PAGE)
    names = found.attributes
    assert names.isdisjoint({"src", "href", "srcset", "style"})
    assert not {name for name in names if name.startswith("on")}
    assert not re.search(
        r"https?:|url\(|@import|\bimport\b|fetch\(|innerHTML", PAGE.replace(NAMESPACE, "")
    )
