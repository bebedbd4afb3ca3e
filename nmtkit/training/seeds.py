"""Seeds for what training draws at random: each a function of the run's seed and its purpose.

So there is no generator state to save, and a draw for one purpose does not change any other.
"""

import hashlib


def initial_seed(seed: int) -> int:
    """Derive the seed of the initial parameters."""
    return _derive(f"{seed}/init")


def micro_batch_seed(seed: int, update: int, number: int, initial: int) -> int:
    """Derive the seed of the dropout in one micro-batch of an update.

    Args:
        seed: of the run.
        update: from 1.
        number: of the micro-batch, from 0.
        initial: the micro-batches of the run's first update.
    """
    first, later = number % initial, number // initial
    return _derive(f"{seed}/{update}/{first}" + (f"/{later}" if later else ""))


def subword_seed(seed: int, update: int, pair: int, side: str) -> int:
    """Derive the seed of how one side of a pair is segmented in one update."""
    return _derive(f"{seed}/{update}/{pair}/{side}")


def _derive(purpose: str) -> int:
    """Hash a purpose to 63 bits."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
