"""Batches of sequences of similar length; the longest translation of a source."""

from collections.abc import Iterator, Sequence

import torch

from nmtkit.config.schema import SearchConfig
from nmtkit.config.setting import InferenceConfig
from nmtkit.config.translation import TranslationConfig

BATCH_SIZES = {"cpu": 64, "cuda": 1024}
BATCH_TOKENS = {"cpu": 4096, "cuda": 32_768}
"""Limits of a batch if --batch-size or --max-tokens is 0, by device type.

On a GPU the host is what limits a step: on an H200 a step of 1 024 sentences takes 1.7 times as
long as one of 256.
"""

_USUAL_WIDTH = 4
"""Hypotheses per sentence for which batch limits are meant; wider beams get smaller batches."""


def batches_by_length(
    lengths: Sequence[int], batch_tokens: int, batch_size: int
) -> Iterator[list[int]]:
    """Yield the indices of sequences batch by batch, the longest first.

    Args:
        lengths: tokens of each sequence.
        batch_tokens: largest number of tokens per batch, padding to the longest sequence counted;
            a longer sequence is a batch alone.
        batch_size: largest number of sequences per batch.
    """
    assert batch_tokens > 0 < batch_size, "limits of 0 stand for those of a device"
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        num_fitting = batch_tokens // lengths[order[start]]
        size = max(1, min(num_fitting, batch_size))
        yield order[start : start + size]
        start += size


def max_tokens_of(config: InferenceConfig, device: torch.device) -> int:
    """Return the largest number of tokens per batch on a device."""
    return config.max_tokens or BATCH_TOKENS[device.type]


def batch_size_of(config: TranslationConfig, device: torch.device) -> int:
    """Return the largest number of sentences per batch on a device."""
    return config.batch_size or BATCH_SIZES[device.type]


def scale_limit(limit: int, width: int) -> int:
    """Scale the limit of a batch to sentences of `width` hypotheses each; at least 1."""
    return max(1, limit * _USUAL_WIDTH // max(width, _USUAL_WIDTH))


def longest_translation(search: SearchConfig, num_source: int) -> int:
    """Return the largest length of a translation of `num_source` tokens, end symbols counted."""
    return int(search.max_length_ratio * num_source) + search.max_length_offset
