from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DataError
from nmtkit.text.links import parse_links
from tests.messages import refuses

LINKS = st.frozensets(st.tuples(st.integers(0, 999), st.integers(0, 999)))


@given(LINKS, LINKS, st.integers(0, 3), st.randoms())
def test_links_are_read_in_any_order_and_count(
    sure: frozenset[tuple[int, int]],
    possible: frozenset[tuple[int, int]],
    first: int,
    random: Random,
) -> None:
    texts = [f"{source + first}-{target + first}" for source, target in sure]
    texts += [f"{source + first}p{target + first}" for source, target in possible]
    texts += texts[:2]
    random.shuffle(texts)
    found = parse_links(" \t".join(texts) + " ", first)
    assert (found.sure, found.possible) == (sure, sure | possible)


def test_both_marks_of_possible_links_are_read() -> None:
    assert parse_links("1?2 3p4") == parse_links("1p2 3?4")


@pytest.mark.parametrize(
    "link", ["0", "0-", "a-1", "1-2-3", "0:1", "-1-2", "0-1/0.5", "1.0-2", "\u0661-1", 99 * "9"]
)
def test_what_is_no_link_is_refused(link: str) -> None:
    with refuses(DataError, f"{link}; SOURCE-TARGET 0-2 0p2", recorded=link == "0:1"):
        parse_links(f"0-0 {link}")


@pytest.mark.parametrize("link", ["0-1", "1p0"])
def test_a_link_before_the_first_word_is_refused(link: str) -> None:
    with refuses(DataError, f"{link} 1; 0"):
        parse_links(f"1-1 {link}", 1)
