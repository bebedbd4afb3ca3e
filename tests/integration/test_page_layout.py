"""Pages in a real browser, on a phone and a desktop, light and dark: layout and contrast."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nmtkit.config.metrics import SignificanceConfig
from nmtkit.reporting.attention.view import page as attention_page
from nmtkit.reporting.report import report_on, write_page
from nmtkit.reporting.systems.page import page as systems_page
from tests.integration.browser import CHROMIUM, Page, browser
from tests.integration.test_attention_page import SELECTED, long_sentence
from tests.records import SESSION
from tests.unit.reporting.attention.builders import example_sentence
from tests.unit.reporting.builders import run_of, validated
from tests.unit.reporting.systems.builders import SYSTEMS, comparison

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

MIN_CONTRAST = 4.5
"""Source: Web Content Accessibility Guidelines 2.1, level AA, for text."""

STICKS_OUT = """
const isBox = (element) => /auto|scroll|hidden/.test(getComputedStyle(element).overflowX);
const inBox = (element) => element !== null && (isBox(element) || inBox(element.parentElement));
const shown = [...document.body.querySelectorAll("*")].filter((one) => one.checkVisibility());
const wider = shown.filter((one) => {
    const {left, right, width} = one.getBoundingClientRect();
    const isCut = one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && !isBox(one);
    return width && !inBox(one.parentElement) && (left < 0 || right > innerWidth || isCut);
});
const cut = shown.filter((one) => {
    if (one.tagName !== "text") return false;
    const [inner, outer] = [one, one.closest("svg")].map((two) => two.getBoundingClientRect());
    return inner.left < outer.left - 1 || inner.right > outer.right + 1;
});
"""

CONTRAST = """
const numbers = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(") ? found.map((one, i) => i < 3 ? 255 * one : one) : found;
};
const over = ([r, g, b, a = 1], below) => [r, g, b].map((one, i) => a * one + (1 - a) * below[i]);
const ground = (element) => {
    if (element === null) return [255, 255, 255];
    const own = numbers(getComputedStyle(element).backgroundColor);
    return own[3] === 0 ? ground(element.parentElement) : over(own, ground(element.parentElement));
};
const luminance = (color) => color.map((one) => one / 255)
    .map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, i) => sum + [0.2126, 0.7152, 0.0722][i] * one, 0);
const contrast = (element) => {
    const style = getComputedStyle(element);
    const below = ground(element);
    const text = over(numbers(element.closest("svg") ? style.fill : style.color), below);
    const [dark, light] = [text, below].map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
};
const hasText = (element) => [...element.childNodes].some((one) => {
    return one.nodeType === Node.TEXT_NODE && one.data.trim();
});
const texts = [...document.body.querySelectorAll("*:not(.space, option, script)")]
    .filter((element) => hasText(element) && element.checkVisibility());
"""


def write_report(path: Path) -> None:
    long = "a-run-with-a-very-long-name-" * 4
    records = validated([3.0, 2.0, 2.5, 2.6, 2.7, 2.8], [1.0, 20.0, 3.0, 4.0, 5.0, 6.0])
    signed = [
        replace(one, signatures={"bleu": "nrefs:1|case:mixed|tok:13a|" * 9}) for one in records
    ]
    run = replace(run_of(long, signed), sessions=[replace(SESSION, data=f"/{'folder/' * 30}")])
    other = run_of("other", records, {"model_size": 1024, "dropout": 0.3})
    write_page(
        report_on([run, replace(other, codec="other")], with_paper=True), path, overwrite=True
    )


def write_report_on_one(path: Path) -> None:
    write_page(report_on([run_of()], with_paper=False), path, overwrite=False)


def attention_writer(**selection: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        sentences = [example_sentence(), long_sentence()]
        title = "runs/a-model-of-a-folder-with-a-long-name" * 3
        text = attention_page(title, {**SELECTED, **selection}, sentences)
        path.write_text(text, encoding="utf-8")

    return write


def write_systems(path: Path) -> None:
    name = "experiments/a-system-with-a-very-long-name" * 3
    named = dict(zip([f"{name}.de", "other.de", name], SYSTEMS.values(), strict=True))
    significance = SignificanceConfig(confidence=True, resamples=20, paired_ar=True, trials=20)
    source = ["eins", "zwei", "drei", "Donaudampfschifffahrt" * 20]
    compared = comparison(named, source=source, significance=significance)
    path.write_text(systems_page(compared), encoding="utf-8")


def write_one_system(path: Path) -> None:
    compared = comparison({"system.de": SYSTEMS["out/poor.en"]})
    path.write_text(systems_page(compared), encoding="utf-8")


PAGES = {
    "report": write_report,
    "report on one": write_report_on_one,
    "systems": write_systems,
    "one system": write_one_system,
    "lines": attention_writer(attention="memory"),
    "lines of one head": attention_writer(attention="memory", heads="2", word="row-1"),
    "matrix": attention_writer(drawing="matrix"),
    "long lines": attention_writer(sentence="2", heads="1,3"),
    "long matrix": attention_writer(sentence="2", drawing="matrix"),
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, write in PAGES.items():
        write(folder / f"{name}.html")
    return folder


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_and_texts_have_contrast(
    name: str, width: int, scheme: str, chromium: Page, folder: Path
) -> None:
    chromium.prefer(scheme)
    chromium.open((folder / f"{name}.html").as_uri(), width=width)
    sizes = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    assert chromium.evaluate(sizes) == [width, width]
    found = "[...wider, ...cut].map((one) => one.outerHTML.slice(0, 200))"
    assert chromium.evaluate(f"(() => {{ {STICKS_OUT} return {found} }})()") == []
    low = (
        f"texts.map((one) => [contrast(one), one.outerHTML.slice(0, 200)])"
        f".filter(([ratio]) => !(ratio >= {MIN_CONTRAST}))"
    )
    assert chromium.evaluate(f"(() => {{ {CONTRAST} return {low} }})()") == []
    assert chromium.evaluate(f"(() => {{ {CONTRAST} return texts.length }})()") > 30
    assert chromium.troubles() == []
