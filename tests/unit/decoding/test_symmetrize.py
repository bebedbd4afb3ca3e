"""Symmetrisation against the published pseudo-code, over whole matrices."""

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.translation import SYMMETRIZATIONS as NAMES
from nmtkit.decoding.symmetrize import SYMMETRIZATIONS

SIZE = 5
POINTS = [*product(range(SIZE), repeat=2)]
NEIGHBORING = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

Alignment = set[tuple[int, int]]


class Koehn:
    """GROW-DIAG-FINAL(e2f,f2e) of Moses' manual; pairs are (foreign, English)."""

    def __init__(self, e2f: Alignment, f2e: Alignment) -> None:
        self.e2f, self.f2e = e2f, f2e
        self.alignment = e2f & f2e

    def english_aligned(self, e: int) -> bool:
        return any(e == other for _, other in self.alignment)

    def foreign_aligned(self, f: int) -> bool:
        return any(f == other for other, _ in self.alignment)

    def grow_diag(self) -> None:
        num_before = -1
        while num_before < len(self.alignment):
            num_before = len(self.alignment)
            for e, f in POINTS:
                for e_step, f_step in NEIGHBORING if (f, e) in self.alignment else ():
                    e_new, f_new = e + e_step, f + f_step
                    if (not self.english_aligned(e_new) or not self.foreign_aligned(f_new)) and (
                        f_new,
                        e_new,
                    ) in self.e2f | self.f2e:
                        self.alignment.add((f_new, e_new))

    def final_and(self, one: Alignment) -> None:
        for e, f in POINTS:
            if not self.english_aligned(e) and not self.foreign_aligned(f) and (f, e) in one:
                self.alignment.add((f, e))


WORD = st.integers(0, SIZE - 1)
ANY = st.sets(st.tuples(WORD, WORD))


@given(ANY, ANY)
def test_growing_is_that_of_the_pseudo_code(forward: Alignment, reverse: Alignment) -> None:
    expected = Koehn(forward, reverse)
    expected.grow_diag()
    assert SYMMETRIZATIONS["grow-diag"](forward, reverse) == expected.alignment
    expected.final_and(forward)
    expected.final_and(reverse)
    assert SYMMETRIZATIONS["grow-diag-final-and"](forward, reverse) == expected.alignment


@given(ANY, ANY)
def test_each_way_has_the_links_of_the_one_before(forward: Alignment, reverse: Alignment) -> None:
    found = [SYMMETRIZATIONS[name](forward, reverse) for name in NAMES]
    assert found[0] == forward & reverse
    assert found[-1] == forward | reverse
    assert all(one <= other for one, other in pairwise(found))


def test_every_way_is_a_setting() -> None:
    assert tuple(SYMMETRIZATIONS) == NAMES
