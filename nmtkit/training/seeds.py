"""Seeds for what is drawn while training: each a function of the run's seed and its purpose.

So there is no generator state to save, and what is drawn for one purpose changes nothing else.
"""

import hashlib


def initial_seed(seed: int) -> int:
    """Derive the seed of the initial parameters."""
    return _derive(f"{seed}/init")


def slot_seed(seed: int, update: int, slot: int, piece: int) -> int:
    """Derive the seed of the dropout in one slot of one update, or in a later piece of it."""
    return _derive(f"{seed}/{update}/{slot}" + (f"/{piece}" if piece else ""))


def subword_seed(seed: int, update: int, pair: int, side: str) -> int:
    """Derive the seed of how one side of a pair is cut in one update."""
    return _derive(f"{seed}/{update}/{pair}/{side}")


def _derive(purpose: str) -> int:
    """Hash a purpose to 63 bits."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
