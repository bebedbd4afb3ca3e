"""Chunks of logits: how many tokens have their logits in memory at the same time.

Training's loss and forced scores go through a batch chunk by chunk, so `[tokens x vocabulary]`
never exists whole. Without torch, as reports count this memory too.
"""

from nmtkit.model.kernels.row_padding import TRAINING_SIZES

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
