import pytest

from nmtkit.model.kernels.logit_chunks import (
    CHUNK_LOGITS,
    MIN_CHUNK_TOKENS,
    chunk_size,
    row_length,
)
from nmtkit.model.kernels.row_padding import TRAINING_SIZES


@pytest.mark.parametrize("vocabulary", [8, 8000, 32_000, 37_000, 1_000_000])
def test_a_chunk_has_a_bounded_size_that_is_a_multiple_of_the_step(vocabulary: int) -> None:
    tokens = chunk_size(vocabulary, "cpu")
    assert tokens >= MIN_CHUNK_TOKENS
    assert tokens == MIN_CHUNK_TOKENS or tokens * vocabulary <= CHUNK_LOGITS["cpu"]
    assert tokens % TRAINING_SIZES.step == 0


@pytest.mark.parametrize(("vocabulary", "expected"), [(1, 64), (64, 64), (36_549, 36_608)])
def test_rows_of_logits_are_aligned_on_gpus(vocabulary: int, expected: int) -> None:
    assert row_length(vocabulary, "cuda") == expected
    assert row_length(vocabulary, "cpu") == vocabulary
