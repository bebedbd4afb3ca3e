"""Padded numbers of rows are few and near the original ones; chunks of logits are bounded."""

import pytest

from nmtkit.model.cost import CHUNK_LOGITS, MIN_CHUNK_TOKENS, chunk_size
from nmtkit.model.kernels.cross_entropy import row_length
from nmtkit.model.kernels.training import (
    BLOCK_ROWS,
    INFERENCE_SIZES,
    TRAINING_SIZES,
    RowSizes,
    padded_size,
)


@pytest.mark.parametrize("row_sizes", [TRAINING_SIZES, INFERENCE_SIZES])
def test_permitted_sizes_are_kept_and_others_grow_to_the_next(row_sizes: RowSizes) -> None:
    sizes = [padded_size(num_rows, row_sizes) for num_rows in range(1, 30_000)]
    assert sizes == sorted(sizes)
    assert all(padded_size(size, row_sizes) == size for size in set(sizes))
    for num_rows, size in enumerate(sizes, 1):
        smallest_step = max(row_sizes.step, num_rows / row_sizes.per_doubling)
        assert num_rows <= size < num_rows + smallest_step


def test_training_has_few_sizes() -> None:
    sizes = {padded_size(num_rows, TRAINING_SIZES) for num_rows in range(1, 30_000)}
    assert len(sizes) < 100
    assert len({size for size in sizes if size <= 1024}) == 16
    assert min(sizes) == 64


def test_inference_has_few_sizes_that_are_near() -> None:
    sizes = {rows: padded_size(rows, INFERENCE_SIZES) for rows in range(1, BLOCK_ROWS + 1)}
    assert all(rows <= size <= max(2 * rows - 1, 1) for rows, size in sizes.items())
    assert all(size <= rows * 1.5 for rows, size in sizes.items() if rows > 32)
    assert len(set(sizes.values())) == 24
    assert len({size for size in sizes.values() if size <= 128}) == 12
    assert max(sizes.values()) == BLOCK_ROWS


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
