"""Batches of sequences of similar length; how long a translation may be.

The length penalty is in search.py.
"""

from collections.abc import Iterator, Sequence

from nmtkit.config.schema import SearchConfig

_USUAL_WIDTH = 4
"""Rows a sentence for which the limits of a batch are meant; wider batches hold less."""


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, batch_size: int
) -> Iterator[list[int]]:
    """Yield the indices of sequences batch by batch, the longest first.

    Args:
        lengths: tokens of each sequence.
        batch_tokens: of a batch, all its sequences counted as long as the longest, at most; a
            sequence that is longer is a batch alone.
        batch_size: sequences of a batch, at most.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        num_fitting = batch_tokens // lengths[order[start]]
        size = max(1, min(num_fitting, batch_size))
        yield order[start : start + size]
        start += size


def narrowed(limit: int, width: int) -> int:
    """Return the limit of a batch whose sentences have `width` rows each; at least 1."""
    return max(1, limit * _USUAL_WIDTH // max(width, _USUAL_WIDTH))


def longest_translation(search: SearchConfig, num_source: int) -> int:
    """Return the longest translation of `num_source` tokens, end symbols counted."""
    return int(search.max_length_ratio * num_source) + search.extra_length
