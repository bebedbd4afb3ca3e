"""The page of `nmtkit report` in a real browser."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from nmtkit.reporting.report import report_on, write_page
from tests.integration.browser import CHROMIUM, Page, browser
from tests.unit.reporting.builders import HOSTILE, run_of, validated

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

NLL = "figure:nth-of-type(2)"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a report on two runs; the second is three times as fast."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    base = run_of("base", validated([3.0, 2.5, 2.25, 2.125], [None] * 4))
    fast = run_of(HOSTILE, validated([4.0, 3.5], [None] * 2), {"dropout": 0.3})
    sooner = [replace(one, elapsed_s=one.elapsed_s / 4) for one in fast.training]
    write_page(report_on([base, replace(fast, training=sooner)], with_paper=False), path, False)
    return path.as_uri()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def chromium(shared: Page, address: str) -> Iterator[Page]:
    shared.open(address)
    yield shared
    assert shared.troubles() == []
    assert shared.requests() in ([address], ["about:blank", address])


def plot(axis: str) -> str:
    return f"{NLL} .by-{axis} svg"


def readout(chromium: Page, axis: str) -> str:
    text: str = chromium.evaluate(f"document.querySelector('{NLL} .by-{axis} output').textContent")
    return text


def visible(chromium: Page) -> list[str]:
    """Return the quantities of the plots that are seen."""
    code = (
        "[...new Set([...document.querySelectorAll('figure > div')]"
        ".filter((one) => one.checkVisibility()).map((one) => one.className))]"
    )
    found: list[str] = chromium.evaluate(code)
    return found


def marks(chromium: Page, axis: str) -> int:
    count: int = chromium.evaluate(
        f"document.querySelectorAll('{plot(axis)} .cursor circle').length"
    )
    return count


def test_one_quantity_of_the_axis_is_seen_and_another_after_a_click(chromium: Page) -> None:
    assert visible(chromium) == ["by-updates"]
    for name in ("time", "tokens", "updates"):
        chromium.click(f"#by-{name}")
        assert visible(chromium) == [f"by-{name}"]


def test_arrow_keys_read_the_values(chromium: Page) -> None:
    chromium.evaluate(f"document.querySelector('{plot('updates')}').focus()")
    assert readout(chromium, "updates") == "400 updates: base 2.125"
    assert marks(chromium, "updates") == 1, "the other curve ends before"
    expected = {
        "ArrowLeft": "300 updates: base 2.25",
        "Home": f"100 updates: base 3, {HOSTILE} 4",
        "ArrowRight": f"200 updates: base 2.5, {HOSTILE} 3.5",
        "End": "400 updates: base 2.125",
    }
    for key, text in expected.items():
        chromium.press(key)
        assert readout(chromium, "updates") == text
    chromium.press("ArrowRight")
    assert readout(chromium, "updates") == "400 updates: base 2.125"
    chromium.evaluate("document.activeElement.blur()")
    assert readout(chromium, "updates").startswith("at the end: ")
    assert marks(chromium, "updates") == 0


def test_the_pointer_reads_the_values(chromium: Page) -> None:
    chromium.click("#by-time")
    chromium.move_to(f"{plot('time')} .curve[data-x] circle:nth-of-type(2)")
    # Its 200 updates took 200 seconds; a quarter of that is 50, where the other run is at 100.
    assert readout(chromium, "time").startswith("3.33 minutes: base 2.5")
    chromium.move_to(f"{plot('time')} .curve[data-x] ~ .curve circle")
    assert readout(chromium, "time") == f"0.42 minutes: {HOSTILE} 4"
    assert marks(chromium, "time") == 1
    chromium.move_to("h1")
    assert readout(chromium, "time").startswith("at the end: ")


def test_plots_have_names_and_the_focus_is_seen(chromium: Page) -> None:
    code = (
        "[...document.querySelectorAll('svg')].every((one) => one.ariaLabel && one.tabIndex === 0)"
    )
    assert chromium.evaluate(code)
    chromium.evaluate("document.getElementById('by-updates').focus()")
    chromium.press("Tab")
    assert chromium.evaluate("document.activeElement.tagName") == "svg"
    assert chromium.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
