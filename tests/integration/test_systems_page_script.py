"""The script of the page of `nmtkit score --html`: words, their differences, and its speed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.reporting.systems.page import page
from nmtkit.text.words import words_and_punctuation
from tests.integration.browser import CHROMIUM, Page, browser
from tests.shared_data import HARD, needs_data
from tests.unit.reporting.systems.builders import comparison
from tests.unit.text.test_words import EMOJI, SAMPLES

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page(comparison()), encoding="utf-8")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(path.as_uri())
        yield opened


def words_in_the_page(chromium: Page, lines: list[str]) -> Any:
    """Return the words of lines as the page's script splits them."""
    script = chromium.evaluate("document.querySelector('script[type=module]').textContent")
    start, end = script.index("const SPACE"), script.index("/** Return, per word")
    function = f"() => {{ {script[start:end]} return {json.dumps(lines)}.map(wordsOf) }}"
    return chromium.evaluate(f"({function})()")


@needs_data
def test_words_are_those_of_the_scores(chromium: Page) -> None:
    nasty = (HARD / "nasty-utf8.txt").read_bytes().decode().split("\n")
    spaces = [f"a{chr(code)}b" for code in (*range(0xA0), 0x1680, 0x2028, 0x200B, 0x3000, 0xFEFF)]
    lines = [*nasty, *spaces, *SAMPLES, "".join(EMOJI)]
    assert words_in_the_page(chromium, lines) == [words_and_punctuation(line) for line in lines]


def common(chromium: Page, one: list[str], other: list[str]) -> tuple[list[bool], list[bool]]:
    """Return which words of two lists the page's script finds in both."""
    script = chromium.evaluate("document.querySelector('script[type=module]').textContent")
    start, end = script.index("const MAX_CELLS"), script.index("/** Count how often")
    function = f"(a, b) => {{ {script[start:end]} return [commonWords(a, b), commonWords(b, a)] }}"
    first, second = chromium.evaluate(f"({function})({json.dumps(one)}, {json.dumps(other)})")
    return first, second


def longest_common(one: list[str], other: list[str]) -> int:
    """Return the length of the longest common subsequence, by its definition."""
    if not one or not other:
        return 0
    if one[0] == other[0]:
        return 1 + longest_common(one[1:], other[1:])
    return max(longest_common(one[1:], other), longest_common(one, other[1:]))


def test_marks_leave_the_longest_common_subsequence(chromium: Page) -> None:
    @given(*[st.lists(st.sampled_from("abc"), max_size=7)] * 2)
    def check(one: list[str], other: list[str]) -> None:
        in_one, in_other = common(chromium, one, other)
        kept_one = [word for word, is_common in zip(one, in_one, strict=True) if is_common]
        kept_other = [word for word, is_common in zip(other, in_other, strict=True) if is_common]
        assert len(kept_one) == len(kept_other) == longest_common(one, other)

    check()
