"""The page of `nmtkit attention` in a real browser."""

from collections.abc import Iterator

import pytest

from nmtkit.reporting.attention.sentences import AttentionMap, Sentence, Tokens
from nmtkit.reporting.attention.view import page
from tests.integration.browser import CHROMIUM, Page, browser
from tests.unit.reporting.attention.builders import HOSTILE, example_sentence, random_weights

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

SELECTED = {
    "sentence": "1",
    "attention": "encoder",
    "layer": "2",
    "heads": "1,2",
    "drawing": "lines",
    "between": "subwords",
    "word": "",
}
LONG_TOKENS, LONG_LAYERS, LONG_HEADS = 100, 6, 8


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
    path = tmp_path_factory.mktemp("page") / "page.html"
    text = page(HOSTILE, SELECTED, [example_sentence(), alone(), long_sentence()])
    path.write_text(text, encoding="utf-8")
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
    assert shared.requests() in ([], [address], ["about:blank", address])


def words(chromium: Page, side: str) -> list[str]:
    code = f"[...document.querySelectorAll('[data-{side}]')].map((one) => one.textContent)"
    found: list[str] = chromium.evaluate(code)
    return found


def description(chromium: Page) -> str:
    text: str = chromium.evaluate("document.getElementById('description').textContent")
    return text.replace("\u2068", "").replace("\u2069", "")


def kept(chromium: Page) -> dict[str, str]:
    """Return what the address says: what differs from the first view, and the rest of that."""
    code = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    values: dict[str, str] = chromium.evaluate(code)
    return SELECTED | values


def go(chromium: Page, fragment: str) -> None:
    """Change the address, and wait until the page has followed."""
    chromium.evaluate(
        "new Promise((done) => {"
        "addEventListener('hashchange', done, {once: true});"
        f"location.hash = {fragment!r}"
        "}).then(() => null)"
    )


def drawn(chromium: Page, selector: str, name: str) -> list[str]:
    """Return an attribute of the elements of the drawing's weights."""
    code = f"[...document.querySelectorAll('.weights {selector}')]"
    found: list[str] = chromium.evaluate(f"{code}.map((one) => one.getAttribute({name!r}))")
    return found


def test_words_are_shown_as_text_whatever_they_look_like(chromium: Page) -> None:
    assert (
        words(chromium, "row")
        == words(chromium, "column")
        == list(example_sentence().attentions[0].rows.pieces)
    )
    chromium.click("#between input[value=words]")
    assert words(chromium, "row") == ["the", HOSTILE, "</s>"]
    assert chromium.evaluate("document.querySelectorAll('b').length") == 0
    assert chromium.evaluate("document.title") == f"Attention of {HOSTILE}"


@pytest.mark.parametrize("between", ["subwords", "words"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "memory"])
def test_the_numbers_are_the_models(chromium: Page, kind: str, between: str) -> None:
    (attention,) = (one for one in example_sentence().attentions if one.kind == kind)
    weights = attention.joined if between == "words" else attention.weights
    go(chromium, f"attention={kind}&layer=3&between={between}&drawing=matrix")
    mean = weights[2].mean(0)
    for row in range(mean.shape[0]):
        for column in range(mean.shape[1]):
            chromium.evaluate("document.getElementById('picture').blur()")
            chromium.evaluate("document.getElementById('picture').focus()")
            for key in ("ArrowRight", *["ArrowDown"] * row, *["ArrowRight"] * column):
                chromium.press(key)
            value = float(description(chromium).rpartition(": ")[2].split(" ")[0])
            assert value == pytest.approx(mean[row, column].item(), abs=6e-4)


def test_a_pointed_word_has_its_lines_alone_and_is_told(chromium: Page) -> None:
    chromium.click("#heads label:nth-of-type(2)")
    before = len(drawn(chromium, "path", "d"))
    chromium.move_to("[data-row='2']")
    assert 0 < len(drawn(chromium, "path", "d")) < before
    weights = example_sentence().attentions[0].weights[1, 0, 2]
    most = weights.argmax().item()
    label = example_sentence().attentions[0].columns.pieces[int(most)]
    assert description(chromium).startswith(f"use attends to {label} {weights.max().item():.2f}")
    chromium.move_to("[data-column='0']")
    weights = example_sentence().attentions[0].weights[1, 0, :, 0]
    label = example_sentence().attentions[0].rows.pieces[int(weights.argmax())]
    expected = f"\u2581the is attended to by {label} {weights.max().item():.2f}"
    assert description(chromium).startswith(expected)
    chromium.move_to("h1")
    assert description(chromium) == "encoder self-attention, layer 2 of 3, head 1"


def test_the_address_keeps_what_is_shown(chromium: Page) -> None:
    chromium.click("#attention input[value=memory]")
    chromium.click("#layer input[value='3']")
    chromium.press("1")
    chromium.click("#between input[value=words]")
    chromium.click("[data-row='1']")
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
    assert chromium.evaluate("document.activeElement.id") == "picture"
    chromium.press("ArrowDown")
    assert description(chromium).startswith("\u2581the attends to ")
    chromium.press("ArrowDown")
    chromium.press("Enter")
    assert kept(chromium)["word"] == "row-2"
    chromium.press("1")
    assert kept(chromium)["heads"] == "1,2"
    assert chromium.evaluate("document.activeElement.id") == "picture"
    assert description(chromium).startswith("\u2581ho attends to ")
    chromium.press("0")
    assert description(chromium) == "encoder self-attention, layer 3 of 3: no head is selected"
    chromium.press("0")
    chromium.press("ArrowRight")
    assert description(chromium).startswith("\u2581ho is attended to by ")
    chromium.press("Escape")
    assert kept(chromium)["word"] == ""
