"""Numbers of rows of matrix products on a CPU: few, as oneDNN compiles code for each of them.

Compiling takes 1 to 2.5 ms and most of a megabyte per number of rows and shape of matrix, ten times
that for the matrix of a vocabulary: longer than the products of an update of a thousand tokens.
Updates and steps of a search differ in their numbers of rows, so rows of zeros are appended up to
the sizes below. Only the arithmetic is here, without torch. The rows are appended by
`low_precision.py`, `inference.py` and `training/objective.py`.
"""

from dataclasses import dataclass

SIZES_PER_DOUBLING = 16
"""At most this many sizes lie between a number of rows and its double: a 16th is padding."""


@dataclass(frozen=True)
class RowSizes:
    """Permitted numbers of rows: powers of two up to `step`, then ever fewer multiples of it.

    Attributes:
        smallest: a power of two.
        step: a power of two.
    """

    smallest: int
    step: int


TRAINING_SIZES = RowSizes(smallest=64, step=64)
"""16 sizes up to 1024 rows; those of inference would be 52."""

INFERENCE_SIZES = RowSizes(smallest=1, step=16)
"""A step of a search has few rows: 4 rows, padded to 64, would take 4 to 10 times as long."""

BLOCK_ROWS = 128
"""Rows per product in inference; larger products are not faster, and would add sizes."""


def padded_size(num_rows: int, sizes: RowSizes) -> int:
    """Return the smallest permitted number of rows that is at least `num_rows`."""
    power = 1 << (num_rows - 1).bit_length()
    if power <= sizes.step:
        return max(sizes.smallest, power)
    step = max(sizes.step, (1 << num_rows.bit_length() - 1) // SIZES_PER_DOUBLING)
    return -(-num_rows // step) * step
