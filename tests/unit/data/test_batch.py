from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.data.batch import cut_into_slots, gather, num_slots
from nmtkit.data.binary import Pairs, Side
from nmtkit.data.sampler import Update, cut_sorted
from nmtkit.symbols import BOS_ID, EOS_ID

CPU = torch.device("cpu")
SOURCES = [[5, 6, EOS_ID], [EOS_ID], [7, 300, 9, 5, EOS_ID], [8, EOS_ID]]
TARGETS = [[4, EOS_ID], [3, 9, EOS_ID], [EOS_ID], [299, 3, 3, 8, EOS_ID]]


def write_side(stem: Path, sequences: list[list[int]], id_type: str) -> Side:
    offsets = np.cumsum([0, *(len(s) for s in sequences)], dtype="<u4")
    ids = np.array([i for s in sequences for i in s], dtype=np.dtype(id_type))
    stem.with_name(f"{stem.name}.offsets").write_bytes(offsets.tobytes())
    stem.with_name(f"{stem.name}.ids").write_bytes(ids.tobytes())
    return Side(stem, len(sequences), id_type, vocabulary_size=400, verify=lambda _: None)


@pytest.fixture(params=["uint16", "uint32"])
def pairs(request: pytest.FixtureRequest, tmp_path: Path) -> Pairs:
    source = write_side(tmp_path / "train.00000.source", SOURCES, request.param)
    target = write_side(tmp_path / "train.00000.target", TARGETS, request.param)
    return Pairs(source, target, ((len(source), 1.0),))


@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [2, 0], [3], [1, 1]])
def test_a_batch_holds_the_sequences_of_its_pairs_in_order(
    pairs: Pairs, indices: list[int]
) -> None:
    batch = gather(pairs, np.array(indices), CPU)
    sources = batch.source.values.split(batch.source.layout.lengths)
    targets = batch.target_out.split(batch.target_in.layout.lengths)
    assert [s.tolist() for s in sources] == [SOURCES[i] for i in indices]
    assert [t.tolist() for t in targets] == [TARGETS[i] for i in indices]
    assert batch.source.layout.num_tokens == sum(len(SOURCES[i]) for i in indices)
    assert batch.target_in.layout.num_tokens == sum(len(TARGETS[i]) for i in indices)


def test_the_decoder_reads_the_begin_symbol_and_all_but_the_last_token(pairs: Pairs) -> None:
    batch = gather(pairs, np.array([0, 3, 2]), CPU)
    read = batch.target_in.values.split(batch.target_in.layout.lengths)
    assert [t.tolist() for t in read] == [[BOS_ID, *TARGETS[i][:-1]] for i in (0, 3, 2)]


def test_ids_of_a_batch_are_int64_and_its_own(pairs: Pairs) -> None:
    batch = gather(pairs, np.array([0]), CPU)
    for ids in (batch.source.values, batch.target_in.values, batch.target_out):
        assert ids.dtype == torch.int64
        ids.zero_()
    assert pairs.source[0].tolist() == SOURCES[0]


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
