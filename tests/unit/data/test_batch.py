from pathlib import Path

import numpy as np
import pytest
import torch

from nmtkit.data.batch import gather, to_device
from nmtkit.data.binary import Pairs, Side
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


def test_ids_of_a_batch_are_int64_copies(pairs: Pairs) -> None:
    batch = gather(pairs, np.array([0]), CPU)
    for ids in (batch.source.values, batch.target_in.values, batch.target_out):
        assert ids.dtype == torch.int64
        ids.zero_()
    assert pairs.source[0].tolist() == SOURCES[0]


def test_copying_to_a_device_keeps_all_tensors(pairs: Pairs) -> None:
    batch = gather(pairs, np.array([2, 1, 3]), CPU)
    arrived = to_device(batch, CPU)
    assert torch.equal(arrived.source.values, batch.source.values)
    assert torch.equal(arrived.target_in.values, batch.target_in.values)
    assert torch.equal(arrived.target_out, batch.target_out)
    sides = (batch.source, arrived.source), (batch.target_in, arrived.target_in)
    for before, after in sides:
        assert after.layout.lengths == before.layout.lengths
        assert after.layout.tensors.keys() == before.layout.tensors.keys()
        for name, tensor in before.layout.tensors.items():
            assert torch.equal(after.layout.tensors[name], tensor)
            assert after.layout.tensors[name].dtype == tensor.dtype
    assert arrived.target_in.layout.tensors["positions"].data_ptr() != (
        batch.target_in.layout.positions.data_ptr()
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_copying_a_batch_to_a_gpu_does_not_wait(pairs: Pairs) -> None:
    gpu = torch.device("cuda", 0)
    indices = np.array([0, 2, 3])
    gather(pairs, indices, gpu)  # the first time, memory is taken
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch = gather(pairs, indices, gpu)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert batch.target_out.device == gpu
    assert batch.target_out.tolist() == gather(pairs, indices, CPU).target_out.tolist()
    assert batch.source.layout.positions.device == gpu
