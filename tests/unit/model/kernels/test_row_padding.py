"""There are few padded numbers of rows, and none is much larger than the original."""

import pytest

from nmtkit.model.kernels.row_padding import (
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
