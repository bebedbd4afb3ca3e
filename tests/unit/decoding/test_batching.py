import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.decoding.batching import batches_by_length, scale_limit

LENGTHS = st.lists(st.integers(1, 50), max_size=40)


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


@pytest.mark.parametrize(
    ("width", "limit"), [(1, 64), (4, 64), (5, 51), (8, 32), (64, 4), (1000, 1)]
)
def test_a_wider_beam_takes_fewer_sentences(width: int, limit: int) -> None:
    assert scale_limit(64, width) == limit
