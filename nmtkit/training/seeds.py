"""Seeds of the random numbers in training, derived from the run's seed and a purpose.

So there is no generator state to save, and draws for different purposes are independent.
"""

import hashlib


def initial_seed(seed: int) -> int:
    """Derive the seed of the initial parameters."""
    return _derive(f"{seed}/init")


def micro_batch_seed(seed: int, update: int, number: int, initial: int) -> int:
    """Derive the seed of the dropout in one micro-batch of an update.

    Args:
        seed: seed of the run.
        update: number of the update, from 1.
        number: number of the micro-batch, from 0.
        initial: number of micro-batches in the run's first update.
    """
    first, later = number % initial, number // initial
    return _derive(f"{seed}/{update}/{first}" + (f"/{later}" if later else ""))


def subword_seed(seed: int, update: int, pair: int, side: str) -> int:
    """Derive the seed of the segmentation of one side of a pair in an update."""
    return _derive(f"{seed}/{update}/{pair}/{side}")


def noise_seed(seed: int, update: int, modifier: str) -> int:
    """Derive the seed of the draws of one modifier for all pairs of an update."""
    return _derive(f"{seed}/{update}/{modifier}")


def _derive(purpose: str) -> int:
    """Hash a purpose to 63 bits."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
