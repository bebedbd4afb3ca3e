"""Numbers of rows of matrix products on a CPU: few, as oneDNN compiles code for each of them.

Compiling takes 1 to 2.5 ms and most of a megabyte per number of rows and shape of matrix, ten times
that for the matrix of a vocabulary: longer than the products of an update of a thousand tokens.
Updates and steps of a search differ in their numbers of rows, so rows of zeros are appended up to
the sizes below. Only the arithmetic is here, without torch. The rows are appended by
`low_precision.py`, `inference.py` and `training/objective.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RowSizes:
    """Permitted numbers of rows: powers of two up to `step`, then ever fewer multiples of it.

    Attributes:
        smallest: a power of two.
        step: a power of two.
        per_doubling: a power of two: at most this many sizes lie between a number of rows and its
            double. With many rows, at most 1 / per_doubling of them is added.
    """

    smallest: int
    step: int
    per_doubling: int


TRAINING_SIZES = RowSizes(smallest=64, step=64, per_doubling=16)
"""16 sizes up to 1024 rows."""

INFERENCE_SIZES = RowSizes(smallest=1, step=16, per_doubling=4)
"""24 sizes up to 1024 rows.

A step of a search has few rows: 4 rows, padded to 64, would take 4 to 10 times as long.
"""

BLOCK_ROWS = 1024
"""Rows per product in inference; more would add sizes, and fewer be joined by copies more often.

Blocks of 128 rows took 1.1 to 1.5 times as long from 256 rows on (Xeon, float32).
"""


def padded_size(num_rows: int, sizes: RowSizes) -> int:
    """Return the smallest permitted number of rows that is at least `num_rows`."""
    power = 1 << (num_rows - 1).bit_length()
    if power <= sizes.step:
        return max(sizes.smallest, power)
    step = max(sizes.step, (1 << num_rows.bit_length() - 1) // sizes.per_doubling)
    return -(-num_rows // step) * step
