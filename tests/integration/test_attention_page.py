"""The page of `nmtkit attention` in a real browser."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from nmtkit.reporting.attention.page import page
from nmtkit.reporting.attention.sentence_json import as_object, packed
from nmtkit.reporting.attention.sentences import AttentionMap, Sentence, Tokens
from tests.integration.browser import CHROMIUM, Page, browser
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence, random_weights

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

SELECTED = {
    "sentence": 1,
    "attention": "encoder",
    "layer": 2,
    "heads": "1,2",
    "drawing": "lines",
    "between": "subwords",
    "word": "",
}
LONG_TOKENS, LONG_LAYERS, LONG_HEADS = 100, 6, 8
DRAWING_MS = 1000
"""What a drawing may take on a busy machine without a GPU; on an idle one it is a tenth."""


def long_sentence() -> Sentence:
    tokens = Tokens(
        tuple(f"token{place}" for place in range(LONG_TOKENS)),
        tuple(range(LONG_TOKENS)),
        tuple(f"token{place}" for place in range(LONG_TOKENS)),
    )
    weights = random_weights(LONG_TOKENS, LONG_TOKENS, LONG_LAYERS, LONG_HEADS)
    attentions = [
        AttentionMap(kind, tokens, tokens, weights) for kind in ("encoder", "decoder", "memory")
    ]
    return Sentence("a long one", "another", tuple(attentions))


def alone() -> Sentence:
    return Sentence("alone", None, example_sentence().attentions[:1])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page of three sentences: a pair, a source alone, a long pair."""
    sentences = [as_object(one, packed) for one in (example_sentence(), alone(), long_sentence())]
    path = tmp_path_factory.mktemp("page") / "page.html"
    data = json.dumps({"selection": SELECTED, "sentences": sentences}, ensure_ascii=False)
    path.write_text(page(HOSTILE, data), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def chromium(shared: Page, address: str) -> Iterator[Page]:
    shared.prefer("light")
    shared.open(address)
    yield shared
    assert shared.troubles() == []
    assert shared.requests() in ([address], ["about:blank", address])


def words(chromium: Page, side: str) -> list[str]:
    code = f"[...document.querySelectorAll('#{side} button')].map((one) => one.textContent)"
    found: list[str] = chromium.evaluate(code)
    return found


def description(chromium: Page) -> str:
    text: str = chromium.evaluate("document.getElementById('description').textContent")
    return text.replace("\u2068", "").replace("\u2069", "")


def kept(chromium: Page) -> dict[str, str]:
    """Return what the address says."""
    code = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    values: dict[str, str] = chromium.evaluate(code)
    return values


def go(chromium: Page, fragment: str) -> None:
    """Change the address, and wait until the page has followed."""
    chromium.evaluate(
        "new Promise((done) => {"
        "addEventListener('hashchange', done, {once: true});"
        f"location.hash = {fragment!r}"
        "}).then(() => null)"
    )


def pixels(chromium: Page, canvas: str) -> list[list[int]]:
    """Return red, green, blue and opacity of what is drawn on a canvas."""
    code = f"""(() => {{
        const canvas = document.querySelector({canvas!r});
        const {{data}} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const starts = [...data.keys()].filter((i) => i % 4 === 0 && data[i + 3] > 0);
        return starts.map((i) => [...data.subarray(i, i + 4)]);
    }})()"""
    found: list[list[int]] = chromium.evaluate(code)
    return found


def test_words_are_shown_as_text_whatever_they_look_like(chromium: Page) -> None:
    assert (
        words(chromium, "rows")
        == words(chromium, "columns")
        == list(example_sentence().attentions[0].rows.pieces)
    )
    chromium.click("#between input[value=words]")
    assert words(chromium, "rows") == ["the", HOSTILE, "</s>"]
    assert chromium.evaluate("document.querySelectorAll('b').length") == 0
    assert chromium.evaluate("document.title") == f"Attention of {HOSTILE}"


@pytest.mark.parametrize(
    ("kind", "sides"),
    [
        ("memory", ["target", "source"]),
        ("encoder", ["source", "source"]),
        ("decoder", ["target", "target"]),
    ],
)
def test_headings_over_both_columns_name_their_sides(
    chromium: Page, kind: str, sides: list[str]
) -> None:
    go(chromium, f"attention={kind}")
    for side, name in zip(("row", "column"), sides, strict=True):
        box = "document.getElementById('{}').getBoundingClientRect()"
        heading, column = (
            chromium.evaluate(f"{box.format(one)}.toJSON()") for one in (f"{side}-side", f"{side}s")
        )
        assert chromium.evaluate(f"document.getElementById('{side}-side').textContent") == name
        assert -1 <= column["top"] - heading["bottom"] < 10
        assert heading["height"] < 40
        assert heading["left"] < column["right"]
        assert column["left"] < heading["right"]
    tops = [f"document.getElementById('{one}').getBoundingClientRect().top"
            for one in ("rows", "columns", "strokes")]  # fmt: skip
    assert len({chromium.evaluate(one) for one in tops}) == 1, "lines begin at their words"


def test_cross_attention_is_offered_first(chromium: Page) -> None:
    code = "[...document.querySelectorAll('#attention input')].map((one) => one.value)"
    assert chromium.evaluate(code) == ["memory", "encoder", "decoder"]
    assert "memory" not in chromium.evaluate("document.body.innerText")


def test_the_marks_of_spaces_are_light_and_words_are_not(chromium: Page) -> None:
    code = "[...document.querySelectorAll('#rows .space')].map((one) => one.textContent)"
    assert chromium.evaluate(code) == ["\u2581", "\u2581"]
    mark = "document.querySelector('#rows .space')"
    assert float(chromium.evaluate(f"getComputedStyle({mark}).opacity")) < 0.5


def test_a_scale_has_the_colour_of_the_squares(chromium: Page) -> None:
    go(chromium, "heads=2&drawing=matrix")
    scale = pixels(chromium, "#scale")
    opacities = [pixel[3] for pixel in scale]
    assert opacities == sorted(opacities)
    assert opacities[-1] == 255
    assert scale[-1][:3] == [0xD5, 0x5E, 0x00]
    weights = [number / 63 for number in range(1, 64)]  # the first square is empty
    assert opacities == pytest.approx([255 * weight**0.5 for weight in weights], abs=1.5)


@pytest.mark.parametrize("between", ["subwords", "words"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "memory"])
def test_the_numbers_are_the_models(chromium: Page, kind: str, between: str) -> None:
    (attention,) = (one for one in example_sentence().attentions if one.kind == kind)
    weights = attention.joined if between == "words" else attention.weights
    go(chromium, f"attention={kind}&layer=3&between={between}&drawing=matrix")
    mean = weights[2].mean(0)
    for row in range(mean.shape[0]):
        for column in range(mean.shape[1]):
            chromium.evaluate("document.getElementById('matrix').blur()")
            chromium.evaluate("document.getElementById('matrix').focus()")
            for key in ("ArrowRight", *["ArrowDown"] * row, *["ArrowRight"] * column):
                chromium.press(key)
            value = float(description(chromium).rpartition(": ")[2].split(" ")[0])
            assert value == pytest.approx(mean[row, column].item(), abs=6e-4)


def test_a_pointed_word_has_its_lines_alone_and_is_told(chromium: Page) -> None:
    chromium.click("#heads label:nth-of-type(2)")
    before = len(pixels(chromium, "#strokes"))
    chromium.move_to("#rows li:nth-child(3) button")
    assert 0 < len(pixels(chromium, "#strokes")) < before
    weights = example_sentence().attentions[0].weights[1, 0, 2]
    most = weights.argmax().item()
    label = example_sentence().attentions[0].columns.pieces[int(most)]
    assert description(chromium).startswith(f"use attends to {label} {weights.max().item():.2f}")
    chromium.move_to("#columns li:nth-child(1) button")
    weights = example_sentence().attentions[0].weights[1, 0, :, 0]
    label = example_sentence().attentions[0].rows.pieces[int(weights.argmax())]
    expected = f"\u2581the is attended to by {label} {weights.max().item():.2f}"
    assert description(chromium).startswith(expected)
    chromium.move_to("h1")
    assert description(chromium) == "encoder self-attention, layer 2 of 3, 1 head"


def test_heads_have_their_colours_light_and_dark(chromium: Page) -> None:
    go(chromium, "heads=2&drawing=matrix&attention=decoder&layer=1")
    for scheme, expected in (("light", [0xD5, 0x5E, 0x00]), ("dark", [0xF2, 0x8C, 0x4A])):
        chromium.prefer(scheme)
        # Its first token can attend to itself alone, with all of its weight.
        assert pixels(chromium, "#matrix").count([*expected, 255]) > 100, scheme
        page_colour = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
        assert page_colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]


def test_the_address_keeps_what_is_shown(chromium: Page) -> None:
    chromium.click("#attention input[value=memory]")
    chromium.click("#layer input[value='3']")
    chromium.press("1")
    chromium.click("#between input[value=words]")
    chromium.click("#rows li:nth-child(2) button")
    values = kept(chromium)
    assert values == {
        "sentence": "1",
        "attention": "memory",
        "layer": "3",
        "heads": "2",
        "drawing": "lines",
        "between": "words",
        "word": "row-2",
    }
    shown = description(chromium)
    assert shown.startswith("Haus attends to ")
    chromium.open(chromium.evaluate("location.href"))
    assert (kept(chromium), description(chromium)) == (values, shown)


@pytest.mark.parametrize(
    "part",
    ["layer=9", "heads=7,x", "attention=x", "sentence=0", "word=row-99", "word=x", "drawing=", "%"],
)
def test_an_address_of_what_is_not_there_shows_something_else(chromium: Page, part: str) -> None:
    go(chromium, part)
    assert "encoder self-attention" in description(chromium)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("layer=99", "layer", "2"),
        ("layer=x", "layer", "2"),
        ("heads=99", "heads", "1,2"),
        ("heads=99,2", "heads", "2"),
        ("heads=", "heads", ""),
    ],
)
def test_a_layer_or_heads_that_are_not_there_are_as_at_first(
    chromium: Page, part: str, key: str, value: str
) -> None:
    go(chromium, part)
    code = f"[...document.querySelectorAll('#{key} input:checked')].map((one) => one.value)"
    assert chromium.evaluate(code) == [one for one in value.split(",") if one]
    go(chromium, f"{part}&attention=memory")
    chromium.click("#drawing input[value=matrix]")
    assert kept(chromium)[key] == value


def focus(chromium: Page) -> str:
    """Return what the control or the word that has the focus says."""
    code = "document.activeElement.value || document.activeElement.textContent"
    text: str = chromium.evaluate(code)
    return text


def test_everything_can_be_done_by_keys(chromium: Page) -> None:
    chromium.press("Tab")  # the chooser of sentences
    chromium.press("Tab")
    assert focus(chromium) == "encoder"
    chromium.press("ArrowRight")
    assert (focus(chromium), kept(chromium)["attention"]) == ("decoder", "decoder")
    chromium.press("ArrowLeft")
    chromium.press("Tab")
    chromium.press("ArrowRight")
    assert (focus(chromium), kept(chromium)["layer"]) == ("3", "3")
    chromium.press("Tab")
    chromium.press(" ")
    assert kept(chromium)["heads"] == "2"
    assert focus(chromium) == "1"
    for _ in range(3):
        chromium.press("Tab")
    assert focus(chromium) == "subwords"
    chromium.press("Tab")
    assert focus(chromium) == "\u2581the"
    assert description(chromium).startswith("\u2581the attends to ")
    chromium.press("ArrowDown")
    chromium.press("Enter")
    assert kept(chromium)["word"] == "row-2"
    chromium.press("1")
    assert kept(chromium)["heads"] == "1,2"
    assert focus(chromium) == "\u2581ho", "a key for heads leaves the word in focus"
    chromium.press("0")
    chromium.press("Tab")
    assert description(chromium) == "encoder self-attention, layer 3 of 3: no head is selected"
    chromium.press("0")
    assert description(chromium).startswith("\u2581the is attended to by ")
    chromium.press("Escape")
    assert kept(chromium)["word"] == ""


def test_what_has_the_focus_is_seen(chromium: Page) -> None:
    chromium.press("Tab")
    chromium.press("Tab")
    code = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert chromium.evaluate(code) == "solid"


def test_every_control_has_a_name(chromium: Page) -> None:
    nodes: list[dict[str, Any]] = chromium.call("Accessibility.getFullAXTree")["nodes"]
    roles = ("radio", "checkbox", "button", "combobox", "image", "list", "group")
    named = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in roles
    ]
    assert ("radio", "cross: target \u2192 source") in named
    assert ("checkbox", "2") in named
    assert ("group", "Layer") in named
    assert ("list", "words that attend") in named
    assert not [role for role, name in named if not name]


def test_a_source_alone_offers_the_encoder_only(chromium: Page) -> None:
    chromium.click("#attention input[value=memory]")
    chromium.evaluate(
        "document.getElementById('sentence').value = 2;"
        "document.getElementById('sentence').dispatchEvent(new Event('change'))"
    )
    assert kept(chromium)["attention"] == "encoder"
    disabled = "[...document.querySelectorAll('input:disabled')].map((one) => one.value)"
    assert chromium.evaluate(disabled) == ["memory", "decoder"]


def test_the_heads_of_a_layer_are_summarised(chromium: Page) -> None:
    summary = as_object(example_sentence(), packed)["attentions"][0]["summary"][1]
    code = "[...document.querySelectorAll('#summary tr')].map((row) => row.innerText)"
    for row, head in zip(chromium.evaluate(code), summary, strict=True):
        expected = [f"{head['entropy']:.2f}", f"{head['distance']:.1f}"]
        assert row.split()[1:3] == expected
    chromium.click("#summary tr:nth-child(2) button")
    assert kept(chromium)["heads"] == "2"


def test_a_long_sentence_is_drawn_without_lag(chromium: Page) -> None:
    go(chromium, "sentence=3&heads=1,2,3,4,5,6,7,8")
    assert "without the" in description(chromium), "there are more lines than are drawn"

    def milliseconds(code: str) -> float:
        """Return the time of the second run, drawn for sure as a pixel is read."""
        pixel = "document.getElementById('strokes').getContext('2d').getImageData(0, 0, 1, 1)"
        run = f"{code}; {pixel}; begin = performance.now(); {code}; {pixel};"
        time: float = chromium.evaluate(
            f"(() => {{ let begin; {run} return performance.now() - begin }})()"
        )
        return time

    assert milliseconds("dispatchEvent(new Event('resize'))") < DRAWING_MS
    row = "document.querySelector('#rows li:nth-child(50) button')"
    over = f"{row}.dispatchEvent(new PointerEvent('pointerover', {{bubbles: true}}))"
    assert milliseconds(over) < DRAWING_MS / 4


def test_it_can_be_seen(chromium: Page) -> None:
    pictures = []
    for scheme in ("light", "dark"):
        for drawing in ("lines", "matrix"):
            chromium.prefer(scheme)
            go(chromium, f"drawing={drawing}&scheme={scheme}")
            pictures.append(chromium.screenshot())
    assert len({*pictures}) == 4
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
