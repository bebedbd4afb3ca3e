"""Slots share an update, and ranks share its slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.data.sampler import Update, cut_sorted
from nmtkit.training.slots import Cut, cut_into_slots, num_slots, own_slots


@pytest.mark.parametrize(
    ("update_tokens", "max_tokens", "expected"),
    [(25_000, 4096, 7), (4096, 4096, 1), (4097, 4096, 2), (100, 4096, 1)],
)
def test_an_update_has_as_many_slots_as_its_tokens_need(
    update_tokens: int, max_tokens: int, expected: int
) -> None:
    assert num_slots(update_tokens, max_tokens) == expected


pair_lengths = st.tuples(st.integers(1, 20), st.integers(1, 20))


@given(st.lists(pair_lengths, min_size=1, max_size=60), st.integers(1, 9))
def test_slots_share_an_update_evenly(lengths: list[tuple[int, int]], slots: int) -> None:
    source, target = np.array(lengths).T
    (pairs,) = cut_sorted(source, target, 20 * 60)
    update = Update(0, pairs, int(source.sum()), int(target.sum()))
    cut = cut_into_slots(update, slots)
    assert sorted(np.concatenate(cut).tolist()) == list(range(len(lengths)))
    assert len(cut) == min(slots, len(lengths))
    assert all(len(slot) for slot in cut)
    tokens = [int(target[slot].sum()) for slot in cut]
    assert max(tokens) - min(tokens) <= target.max(), "of the sorted side"


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 4), st.integers(1, 5))
def test_ranks_share_all_slots_and_pieces_and_each_has_something_to_do(
    num_pairs: int, slots: int, pieces: int, num_ranks: int
) -> None:
    update = Update(0, np.arange(num_pairs), num_pairs, num_pairs)
    cut = Cut(slots, pieces)
    shares = [list(own_slots(update, cut, rank, num_ranks)) for rank in range(num_ranks)]
    seen: list[int] = []
    for share in shares:
        assert [slot.is_last for slot in share] == [False] * (len(share) - 1) + [True]
        assert all(len(slot.pairs) for slot in share)
        seen += [pair for slot in share if slot.weight for pair in slot.pairs]
        assert len({slot.weight for slot in share}) == 1
    assert sorted(seen) == list(range(num_pairs))
    whole = list(own_slots(update, cut, rank=0, num_ranks=1))
    of_all = {(s.number, s.piece): s.pairs.tolist() for share in shares for s in share if s.weight}
    assert of_all == {(slot.number, slot.piece): slot.pairs.tolist() for slot in whole}
