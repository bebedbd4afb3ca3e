"""Sizes of matrix products: padded rows on a CPU, and chunks of logits. Without torch.

oneDNN compiles code for each number of rows. Compiling takes 1 to 2.5 ms and most of a megabyte per
number of rows and shape of matrix, ten times that for the matrix of a vocabulary: longer than the
products of an update of a thousand tokens. Updates and steps of a search differ in their numbers of
rows, so `low_precision.py`, `inference.py` and `training/objective.py` append rows of zeros up to
the sizes below.

Training's loss and forced scores go through a batch chunk by chunk of tokens, so the logits
`[tokens x vocabulary]` never exist whole. Reports count the memory of a chunk, too.
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

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 27}
"""Largest number of logits per chunk, by device type: small in memory, large enough for speed.

On a GPU that is about 3600 tokens with 37 000 entries: enough that kernels run longer than their
launch takes.
"""

LOGIT_ALIGNMENT = {"cpu": 1, "cuda": 64}
"""The length of a row of logits in memory is a multiple of this, by device type.

Products whose rows are not aligned use slow kernels of cuBLAS: with an odd number of entries, an
update of `base` on an H200 took 1.25 times as long.
"""

MIN_CHUNK_TOKENS = 256
"""Smallest number of tokens per chunk, however large the vocabulary."""


def padded_size(num_rows: int, sizes: RowSizes) -> int:
    """Return the smallest permitted number of rows that is at least `num_rows`."""
    power = 1 << (num_rows - 1).bit_length()
    if power <= sizes.step:
        return max(sizes.smallest, power)
    step = max(sizes.step, (1 << num_rows.bit_length() - 1) // sizes.per_doubling)
    return -(-num_rows // step) * step


def row_length(vocabulary_size: int, device: str) -> int:
    """Return the length in memory of a row of logits on a device type, at least the vocabulary."""
    alignment = LOGIT_ALIGNMENT[device]
    return -(-vocabulary_size // alignment) * alignment


def chunk_size(vocabulary_size: int, device: str) -> int:
    """Return the number of tokens per chunk on a device type ("cpu" or "cuda").

    It is a multiple of the step of `TRAINING_SIZES`, so few rows of zeros are added to a chunk.
    """
    tokens = CHUNK_LOGITS[device] // vocabulary_size
    return max(MIN_CHUNK_TOKENS, tokens // TRAINING_SIZES.step * TRAINING_SIZES.step)
