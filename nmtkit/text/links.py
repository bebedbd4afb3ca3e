"""Word alignments as lines of links, in Pharaoh's format: `0-0 1-2` links source and target words.

Gold alignments also have links that are only possible, not sure: `1p2`, or `1?2`.
"""

import re
from dataclasses import dataclass

from nmtkit.errors import DataError

Link = tuple[int, int]
"""Indices of a source word and a target word, from 0."""

_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")


@dataclass(frozen=True)
class Links:
    """The links of a line.

    Attributes:
        sure: links that an alignment should have.
        possible: links that it may have; the sure ones are among them.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse_links(line: str, first: int = 0) -> Links:
    """Return the links of a line; a blank line has none.

    Args:
        line: links between white space, in any order; repeated ones count once.
        first: number of the first word.

    Raises:
        DataError: something is not a link, or it has a smaller number.
    """
    sure, possible = set(), set()
    for text in line.split():
        found = _LINK.fullmatch(text)
        if found is None:
            raise DataError(
                f"{text!r} is no link; write SOURCE-TARGET, such as 0-2, or 0p2 for a possible one"
            )
        link = int(found[1]) - first, int(found[3]) - first
        if min(link) < 0:
            raise DataError(f"the link {text} is before word {first}; do these count from 0?")
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))
