from itertools import accumulate

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmtkit.packed import Layout, batches_by_length, pack_sequences, pack_vectors

CPU = torch.device("cpu")
lengths = st.lists(st.integers(1, 7), min_size=1, max_size=6)
LENGTHS = st.lists(st.integers(1, 50), max_size=40)


def split(values: Tensor, layout: Layout) -> list[Tensor]:
    return list(values.split(layout.lengths))


@given(lengths)
def test_packing_an_unpacked_block_is_the_identity(sizes: list[int]) -> None:
    layout = Layout(sizes, CPU)
    values = torch.randn(layout.num_tokens, 2, 3)
    assert torch.equal(layout.pack(layout.unpack(values)), values)


@given(lengths)
def test_unpacking_is_padding_with_zeros(sizes: list[int]) -> None:
    layout = Layout(sizes, CPU)
    values = torch.randn(layout.num_tokens, 3)
    padded = torch.nn.utils.rnn.pad_sequence(split(values, layout), batch_first=True)
    assert torch.equal(layout.unpack(values), padded)


@given(lengths)
def test_a_layout_describes_the_block(sizes: list[int]) -> None:
    layout = Layout(sizes, CPU)
    assert layout.num_sentences == len(sizes)
    assert layout.num_tokens == sum(sizes)
    assert layout.longest == max(sizes)
    assert layout.is_rectangular == (len(set(sizes)) == 1)
    assert layout.positions.tolist() == [place for size in sizes for place in range(size)]
    assert layout.starts.tolist() == [0, *accumulate(sizes)][:-1]
    assert layout.ends.tolist() == [0, *accumulate(sizes)]
    assert layout.ends.dtype == torch.int32
    assert layout.mask.tolist() == [[t < size for t in range(max(sizes))] for size in sizes]


@pytest.mark.parametrize("sizes", [[3, 1, 4], [2, 2, 2], [5], [1, 1], [1, 6]])
def test_gradients_of_packing_and_unpacking_are_exact(sizes: list[int]) -> None:
    layout = Layout(sizes, CPU)
    values = torch.randn(layout.num_tokens, 2, dtype=torch.float64, requires_grad=True)
    block = torch.randn(len(sizes), layout.longest, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.unpack, values)
    assert torch.autograd.gradcheck(layout.pack, block)


@pytest.mark.parametrize("is_contiguous", [True, False])
def test_equal_lengths_need_no_copy_and_equal_the_general_path(
    is_contiguous: bool,
) -> None:
    # The first three sentences of a ragged batch are those of a rectangular one.
    rectangular, ragged = Layout([4, 4, 4], CPU), Layout([4, 4, 4, 1], CPU)
    values = torch.randn(13, 6) if is_contiguous else torch.randn(6, 13).T
    block = rectangular.unpack(values[:12])
    assert torch.equal(block, ragged.unpack(values)[:3])
    assert torch.equal(rectangular.pack(block), ragged.pack(ragged.unpack(values))[:12])
    if is_contiguous:
        assert block.data_ptr() == values.data_ptr()


@given(st.lists(st.lists(st.integers(0, 2**40), min_size=1, max_size=5), min_size=1, max_size=5))
def test_packed_sequences_can_be_split_again(sequences: list[list[int]]) -> None:
    packed = pack_sequences(sequences, CPU)
    assert packed.values.dtype == torch.int64
    assert [part.tolist() for part in split(packed.values, packed.layout)] == sequences
    assert [part.tolist() for part in packed.split()] == sequences
    again = pack_vectors(packed.split())
    assert torch.equal(again.values, packed.values)
    assert again.layout.lengths == packed.layout.lengths


@pytest.mark.parametrize("sizes", [[], [3, 0, 2]])
def test_a_layout_without_sequences_or_with_empty_ones_is_refused(sizes: list[int]) -> None:
    with pytest.raises(AssertionError, match=r"at least one sequence|no sequence may be empty"):
        Layout(sizes, CPU)


@given(lengths=LENGTHS, batch_tokens=st.integers(1, 200), batch_size=st.integers(1, 9))
def test_batches_hold_everything_once_longest_first_within_both_limits(
    lengths: list[int], batch_tokens: int, batch_size: int
) -> None:
    batches = list(batches_by_length(lengths, batch_tokens, batch_size))
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[index] for index in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) <= batch_size
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= batch_tokens


@given(lengths=LENGTHS, batch_tokens=st.integers(1, 200), batch_size=st.integers(1, 9))
def test_no_batch_could_take_the_next_sequence(
    lengths: list[int], batch_tokens: int, batch_size: int
) -> None:
    for batch in list(batches_by_length(lengths, batch_tokens, batch_size))[:-1]:
        num_tokens = (len(batch) + 1) * lengths[batch[0]]
        assert len(batch) == batch_size or num_tokens > batch_tokens
