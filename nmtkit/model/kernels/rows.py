"""Numbers of rows of matrix products on a CPU: few, as oneDNN compiles code for each of them.

Compiling takes 1 to 2.5 ms and most of a megabyte per number of rows and shape of matrix, ten times
that for the matrix of a vocabulary: longer than the products of an update of a thousand tokens.
Updates and steps of a search differ in their numbers of rows, so rows of zeros fill them up to the
sizes below. Only the arithmetic is here, without torch; `low_precision.py` and `inference.py` fill.
"""

from dataclasses import dataclass

SIZES_TO_DOUBLE = 16
"""At most this many sizes lie between a number of rows and its double: a 16th is filled up."""


@dataclass(frozen=True)
class Filling:
    """Sizes to fill up to: powers of two up to `step`, then its multiples, ever fewer of them.

    Attributes:
        least: the smallest size, a power of two.
        step: a power of two.
    """

    least: int
    step: int


TRAINING = Filling(least=64, step=64)
"""16 sizes up to 1024 rows; those of inference would be 52."""

INFERENCE = Filling(least=1, step=16)
"""A step of a search has few rows: 4 rows, filled up to 64, would take 4 to 10 times as long."""

BLOCK_ROWS = 128
"""Rows that inference multiplies at a time; more are not faster, and would be more sizes."""

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Logits of one chunk at most: few enough to stay cheap, enough for fast products.

On a GPU that is 7000 tokens of 37 000 entries, whose kernels outlast what it takes to start them.
"""

MIN_CHUNK_TOKENS = 256
"""However large the vocabulary, a chunk has this many tokens."""


def filled_size(num_rows: int, filling: Filling) -> int:
    """Return the number of rows that a product has in place of this one: never fewer."""
    power = 1 << (num_rows - 1).bit_length()
    if power <= filling.step:
        return max(filling.least, power)
    step = max(filling.step, (1 << num_rows.bit_length() - 1) // SIZES_TO_DOUBLE)
    return -(-num_rows // step) * step


def chunk_size(vocabulary_size: int, device: str) -> int:
    """Return the number of tokens whose logits are held at a time on a kind of device.

    It is a size that needs no filling.
    """
    tokens = CHUNK_LOGITS[device] // vocabulary_size
    return max(MIN_CHUNK_TOKENS, tokens // TRAINING.step * TRAINING.step)
