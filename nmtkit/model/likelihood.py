"""Log-likelihoods from hidden vectors, a chunk of tokens at a time.

The logits of all tokens never exist together: with a large vocabulary they would be most of the
memory that a model needs.
"""

import math

import torch
from torch import Tensor

from nmtkit.model.kernels.rows import chunk_size
from nmtkit.model.transformer import Transformer


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
    chunk = chunk_size(model.output_weight.shape[0], hidden.device.type)
    parts = [
        model.logits(vectors).log_softmax(-1, dtype=exact).gather(1, ids[:, None]).squeeze(1)
        for vectors, ids in zip(hidden.split(chunk), targets.split(chunk), strict=True)
    ]
    return torch.cat(parts)


def perplexity(nll: float) -> float:
    """Compute exp of a negative log-likelihood per token; infinite beyond the largest double."""
    try:
        return math.exp(nll)
    except OverflowError:
        return math.inf
