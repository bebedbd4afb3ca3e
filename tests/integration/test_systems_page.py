"""The page of `nmtkit score --html` in a real browser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nmtkit.evaluation.evaluate import Comparison
from nmtkit.reporting.systems.page import page
from tests.integration.browser import CHROMIUM, Page, browser
from tests.unit.reporting.builders import HOSTILE
from tests.unit.reporting.systems.builders import comparison

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

NUM_LINES = 120
MAX_TABS = 100


def lines() -> Comparison:
    """Compare three systems: `cats` is better in the lines of cats, `dogs` in those of dogs."""
    animals = ["cat", "dog", "bird"]
    reference = [f"The {animals[i % 3]} number {i} sat here today." for i in range(NUM_LINES)]
    reference[7] += " It was late" + " and very dark" * 4 + "."
    named = {
        "out/cats.txt": [line.replace("dog", "hound") for line in reference],
        "out/dogs.txt": [line.replace("cat", "pet") for line in reference],
        "out/none.txt": ["Nothing was here."] * NUM_LINES,
    }
    source = [f"Quelle {i} {HOSTILE}" for i in range(NUM_LINES)]
    return comparison(named, reference, source=source, metric="chrf,ter")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page(lines()), encoding="utf-8")
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


def text(chromium: Page, selector: str) -> str:
    found: str = chromium.evaluate(f"document.querySelector({selector!r}).textContent")
    return found


def texts(chromium: Page, selector: str) -> list[str]:
    code = f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)"
    found: list[str] = chromium.evaluate(code)
    return found


def choose(chromium: Page, control: str, value: str) -> None:
    """Choose a value of a select."""
    chromium.evaluate(
        f"{{ const one = document.getElementById({control!r}); one.value = {value!r};"
        "one.dispatchEvent(new Event('change')) }"
    )


def search(chromium: Page, wanted: str) -> None:
    """Type into the search, and wait until the list has followed."""
    chromium.evaluate(
        f"document.getElementById('search').value = {json.dumps(wanted)};"
        "document.getElementById('search').dispatchEvent(new Event('input'));"
        "new Promise((done) => setTimeout(done, 400)).then(() => null)"
    )


def numbers(chromium: Page) -> list[int]:
    """Return the numbers of the lines that are shown."""
    heads = texts(chromium, "#sentences .head b")
    return [int(one.removeprefix("Line ").replace(",", "")) for one in heads]


def kept(chromium: Page) -> dict[str, str]:
    """Return what the address says."""
    code = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    values: dict[str, str] = chromium.evaluate(code)
    return values


def test_the_first_system_and_the_best_other_one_are_compared(chromium: Page) -> None:
    assert chromium.evaluate("document.getElementById('first').selectedOptions[0].text") == "cats"
    assert chromium.evaluate("document.getElementById('second').selectedOptions[0].text") == "dogs"
    wins = r"cats is better in 40 sentences, by \d+\.\d\d on average; dogs is better in 40 "
    wins += r"sentences, by \d+\.\d\d on average; 40 are equal"
    assert re.fullmatch(wins, text(chromium, "#wins"))
    assert texts(chromium, "#telling h3") == [
        "cats gets right, dogs misses",
        "dogs gets right, cats misses",
    ]


def test_ngrams_are_those_that_one_system_misses(chromium: Page) -> None:
    assert texts(chromium, "#telling > :first-child tbody tr:first-child td") == [
        "The cat", "40", "0", "40",
    ]  # fmt: skip
    choose(chromium, "order", "1")
    assert texts(chromium, "#telling > :first-child tbody button") == ["cat"]
    assert texts(chromium, "#telling > :last-child tbody button") == ["dog"]
    assert kept(chromium) == {"order": "1"}


def test_a_click_on_an_ngram_shows_its_sentences(chromium: Page) -> None:
    choose(chromium, "order", "1")
    chromium.click("#telling > :last-child tbody button")
    assert sorted(numbers(chromium)) == list(range(2, NUM_LINES + 1, 3))
    assert text(chromium, "#found") == "40 sentences"
    assert chromium.evaluate("document.activeElement.id") == "all-ngrams"
    assert text(chromium, "#all-ngrams") == "dog \u2014 missed by cats \u00d7"
    chromium.press("Enter")
    assert text(chromium, "#found") == f"{NUM_LINES} sentences"
    assert chromium.evaluate("document.activeElement.id") == "search"


def test_another_pair_changes_everything(chromium: Page) -> None:
    choose(chromium, "second", "3")
    assert texts(chromium, "#telling h3")[0] == "cats gets right, none misses"
    assert text(chromium, "#wins").startswith("cats is better in 120 sentences, by ")
    chromium.click("#swap")
    assert kept(chromium) == {"first": "3", "second": "1"}
    assert texts(chromium, "#telling h3")[1] == "cats gets right, none misses"
    choose(chromium, "second", "3")
    second = "document.getElementById('second').value"
    assert chromium.evaluate(second) == "4", "no system is compared with itself"


def test_sentences_can_be_filtered_by_the_better_system_and_by_length(chromium: Page) -> None:
    choose(chromium, "winner", "second")
    assert text(chromium, "#found") == "40 sentences"
    assert all(number % 3 == 2 for number in numbers(chromium))
    choose(chromium, "winner", "equal")
    assert all(number % 3 == 0 for number in numbers(chromium))
    choose(chromium, "winner", "all")
    choose(chromium, "length", "21-30")
    assert numbers(chromium) == [8]
    assert text(chromium, "#found") == "1 sentence"


def test_the_search_finds_texts_of_any_case_and_of_the_source(chromium: Page) -> None:
    search(chromium, "NUMBER 11")
    assert sorted(numbers(chromium)) == [12, *range(111, 121)]
    search(chromium, f"quelle 5 {HOSTILE[:7]}")
    assert numbers(chromium) == [6]
    search(chromium, "pet")
    assert all(number % 3 == 1 for number in numbers(chromium))
    search(chromium, "nothing")
    assert numbers(chromium) == [], "only the compared systems are searched"
    assert text(chromium, "#found") == "no sentences"
    search(chromium, "")
    assert text(chromium, "#found") == f"{NUM_LINES} sentences"


def test_sentences_are_sorted(chromium: Page) -> None:
    data = chromium.evaluate("JSON.parse(document.getElementById('data').textContent)")
    gains = [one - other for one, other in zip(*data["scores"][:2], strict=True)]
    means = [one + other for one, other in zip(*data["scores"][:2], strict=True)]
    order = list(range(NUM_LINES))
    expected = {
        "difference": sorted(order, key=lambda line: -abs(gains[line])),
        "lowest": sorted(order, key=lambda line: means[line]),
        "highest": sorted(order, key=lambda line: -means[line]),
        "text": order,
        "longest": sorted(order, key=lambda line: -len(data["reference"][line])),
    }
    assert list(expected) == chromium.evaluate(
        "[...document.getElementById('sort').options].map((one) => one.value)"
    )
    for name, wanted in expected.items():
        choose(chromium, "sort", name)
        assert numbers(chromium) == [line + 1 for line in wanted[:50]], name


def test_differing_words_are_marked(chromium: Page) -> None:
    search(chromium, "number 1 ")
    item = "#sentences li:first-child"
    assert texts(chromium, f"{item} dt span") == ["source", "reference", "cats", "dogs"]
    marks = (
        "[...document.querySelectorAll('#sentences mark')].map((m) => [m.className, m.textContent])"
    )
    assert chromium.evaluate(marks) == [["first missed", "dog"], ["first", "hound"]]
    choose(chromium, "marks", "systems")
    assert chromium.evaluate(marks) == [["first", "hound"], ["second", "dog"]]
    choose(chromium, "second", "3")
    choose(chromium, "marks", "reference")
    assert ["both missed", "dog"] in chromium.evaluate(marks)


def test_the_address_keeps_what_is_shown(chromium: Page) -> None:
    choose(chromium, "second", "3")
    choose(chromium, "order", "2")
    choose(chromium, "winner", "first")
    search(chromium, "dog & \u00e4?")
    values = {"second": "3", "order": "2", "winner": "first", "search": "dog & \u00e4?"}
    assert kept(chromium) == values
    chromium.open(chromium.evaluate("location.href"))
    assert kept(chromium) == values
    assert chromium.evaluate("document.getElementById('search').value") == values["search"]
    assert text(chromium, "#found") == "no sentences"


@pytest.mark.parametrize(
    "fragment",
    ["first=9", "second=0", "first=2&second=2", "sort=x", "length=x", "page=99", "page=-1", "%",
     "__proto__=1", "marks=toString", "order=9", "side=x&ngram=a", "first=1e0"],
)  # fmt: skip
def test_an_address_of_what_is_not_there_shows_something_else(
    chromium: Page, address: str, fragment: str
) -> None:
    chromium.open(f"{address}#{fragment}")
    assert chromium.troubles() == []
    pair = [f"document.getElementById('{one}').value" for one in ("first", "second")]
    first, second = map(chromium.evaluate, pair)
    assert first in "123"
    assert second in "1234"
    assert first != second
    assert "sentence" in text(chromium, "#found")
    chromium.open(address)


def test_everything_can_be_done_by_keys(chromium: Page) -> None:
    focused = "document.activeElement.id"
    wanted = ["first", "second", "swap", "order", "search", "winner", "length", "sort", "marks"]
    seen: list[str] = []
    while "marks" not in seen and len(seen) < MAX_TABS:
        chromium.press("Tab")
        seen.append(chromium.evaluate(focused))
    places = [seen.index(one) for one in wanted]
    assert places == sorted(places)
    choose(chromium, "order", "1")
    chromium.evaluate("document.getElementById('order').focus()")
    assert kept(chromium) == {"order": "1"}
    chromium.press("Tab")
    chromium.press("Enter")
    assert kept(chromium)["ngram"] == "cat"


def test_every_control_has_a_name(chromium: Page) -> None:
    nodes: list[dict[str, Any]] = chromium.call("Accessibility.getFullAXTree")["nodes"]
    roles = ("radio", "button", "combobox", "searchbox", "image", "group", "navigation", "list")
    named = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in roles
    ]
    names = {(role, (name or "").strip()) for role, name in named}
    assert {("combobox", "Compare"), ("searchbox", "Search"), ("combobox", "Better")} <= names
    unnamed = [role for role, name in named if not name]
    assert set(unnamed) <= {"group", "list"}, "details, and the list of sentences"
