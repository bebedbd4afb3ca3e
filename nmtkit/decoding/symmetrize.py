"""Word alignments of two directions combined into one, and how far the directions agree.

A link is a source word and a target word, from 0. The links of source to target have at most one
source word per target word, those of target to source at most one target word per source word.

Source: Koehn, Och and Marcu 2003, "Statistical Phrase-Based Translation", section 3.1; the order in
which links are visited and added is that of the pseudo-code of Moses' training manual.
"""

from collections.abc import Callable, Iterator, Set

from nmtkit.text.links import Link, in_order

LinkSet = Set[Link]

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
"""Steps to the links next to a link, in words of target and source."""


def intersection(forward: LinkSet, reverse: LinkSet) -> LinkSet:
    """Return the links of both directions."""
    return forward & reverse


def union(forward: LinkSet, reverse: LinkSet) -> LinkSet:
    """Return the links of either direction."""
    return forward | reverse


def grow_diag(forward: LinkSet, reverse: LinkSet) -> LinkSet:
    """Return the common links, and links of either direction next to them.

    A link is added, as long as there are any, if one of its words has no link yet.
    """
    candidates = in_order(forward | reverse)
    found = _Links(forward & reverse)
    num_before = -1
    while num_before < len(found.links):
        num_before = len(found.links)
        for link in candidates:
            if link in found.links:
                for neighbour in _neighbours(link):
                    if neighbour in forward or neighbour in reverse:
                        found.add_if_either_is_free(neighbour)
    return found.links


def grow_diag_final_and(forward: LinkSet, reverse: LinkSet) -> LinkSet:
    """Return `grow_diag`, and the links between words that both have no link yet.

    Those of source to target are added first.
    """
    found = _Links(grow_diag(forward, reverse))
    for link in [*in_order(forward), *in_order(reverse)]:
        found.add_if_both_are_free(link)
    return found.links


SYMMETRIZATIONS: dict[str, Callable[[LinkSet, LinkSet], LinkSet]] = {
    "intersection": intersection,
    "grow-diag": grow_diag,
    "grow-diag-final-and": grow_diag_final_and,
    "union": union,
}
"""Functions of the links of source to target, and of target to source.

`SYMMETRIZATIONS` in nmtkit/config/translation.py has their names.
"""


class _Links:
    """Links that are added, and the words that have one."""

    def __init__(self, links: LinkSet) -> None:
        self.links = set(links)
        self._sources = {source for source, _ in links}
        self._targets = {target for _, target in links}

    def add_if_either_is_free(self, link: Link) -> None:
        if link[0] not in self._sources or link[1] not in self._targets:
            self._add(link)

    def add_if_both_are_free(self, link: Link) -> None:
        if link[0] not in self._sources and link[1] not in self._targets:
            self._add(link)

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self._sources.add(link[0])
        self._targets.add(link[1])


def _neighbours(link: Link) -> Iterator[Link]:
    source, target = link
    return ((source + right, target + down) for down, right in _NEIGHBOURS)
