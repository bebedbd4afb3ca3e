"""Keys of 64 bits that lines, and pairs of lines, are compared by.

Among 36 million different pairs, the chance that any two have one key is 4 in 100 000.
"""

import hashlib

KEY_BYTES = 8


def key(*lines: str) -> int:
    """Return the key of a line, or of several; white space counts as one space, or none at ends."""
    text = "\n".join(" ".join(line.split()) for line in lines)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest(), "little")
