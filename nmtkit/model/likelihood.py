"""Log-likelihoods from hidden vectors, a chunk of tokens at a time.

The logits of all tokens never exist together: of a large vocabulary they would be most of the
memory that a model needs.
"""

import math

import torch
from torch import Tensor

from nmtkit.model.transformer import Transformer

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Logits of one chunk at most: few enough to stay cheap, enough for fast products.

On a GPU that is 7000 tokens of 37 000 entries, whose kernels outlast what it takes to start them.
"""

MIN_CHUNK_TOKENS = 256
"""However large the vocabulary, a chunk has this many tokens."""


def token_log_probs(model: Transformer, hidden: Tensor, targets: Tensor) -> Tensor:
    """Compute the natural log-probability of each target from its hidden vector.

    Args:
        model: projects hidden vectors to logits.
        hidden: (Y, D) from `Transformer.decode`.
        targets: (Y,) int64 ids.

    Returns:
        (Y,) float32, or float64 where the hidden vectors are.
    """
    exact = torch.promote_types(hidden.dtype, torch.float32)
    chunk = chunk_size(model.output_weight.shape[0], hidden.device)
    parts = [
        model.logits(vectors).log_softmax(-1, dtype=exact).gather(1, ids[:, None]).squeeze(1)
        for vectors, ids in zip(hidden.split(chunk), targets.split(chunk), strict=True)
    ]
    return torch.cat(parts)


def chunk_size(vocabulary_size: int, device: torch.device) -> int:
    """Choose the number of tokens whose logits are held at a time on a device."""
    return max(MIN_CHUNK_TOKENS, CHUNK_LOGITS[device.type] // vocabulary_size)


def perplexity(nll: float) -> float:
    """Compute exp of a negative log-likelihood a token; infinite where that is no double."""
    try:
        return math.exp(nll)
    except OverflowError:
        return math.inf
