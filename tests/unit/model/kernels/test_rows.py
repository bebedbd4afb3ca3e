"""Few numbers of rows, and none much larger than those that they take the place of."""

import pytest

from nmtkit.model.kernels.rows import (
    BLOCK_ROWS,
    CHUNK_LOGITS,
    INFERENCE,
    MIN_CHUNK_TOKENS,
    SIZES_TO_DOUBLE,
    TRAINING,
    Filling,
    chunk_size,
    filled_size,
)


@pytest.mark.parametrize("filling", [TRAINING, INFERENCE])
def test_a_size_stays_and_others_grow_to_the_next(filling: Filling) -> None:
    sizes = [filled_size(num_rows, filling) for num_rows in range(1, 30_000)]
    assert sizes == sorted(sizes)
    assert all(filled_size(size, filling) == size for size in set(sizes))
    for num_rows, size in enumerate(sizes, 1):
        smallest_step = max(filling.step, num_rows / SIZES_TO_DOUBLE)
        assert num_rows <= size < num_rows + smallest_step


def test_training_has_few_sizes() -> None:
    sizes = {filled_size(num_rows, TRAINING) for num_rows in range(1, 30_000)}
    assert len(sizes) < 100
    assert len({size for size in sizes if size <= 1024}) == 16
    assert min(sizes) == 64


def test_inference_has_few_sizes_that_are_near() -> None:
    sizes = {rows: filled_size(rows, INFERENCE) for rows in range(1, BLOCK_ROWS + 1)}
    assert all(rows <= size <= max(2 * rows - 1, 1) for rows, size in sizes.items())
    assert all(size <= rows * 1.5 for rows, size in sizes.items() if rows > 32)
    assert len(set(sizes.values())) == 12
    assert max(sizes.values()) == BLOCK_ROWS


@pytest.mark.parametrize("vocabulary", [8, 8000, 32_000, 37_000, 1_000_000])
def test_a_chunk_is_bounded_but_never_tiny_and_needs_no_filling(vocabulary: int) -> None:
    tokens = chunk_size(vocabulary, "cpu")
    assert tokens >= MIN_CHUNK_TOKENS
    assert tokens == MIN_CHUNK_TOKENS or tokens * vocabulary <= CHUNK_LOGITS["cpu"]
    assert tokens % TRAINING.step == 0
