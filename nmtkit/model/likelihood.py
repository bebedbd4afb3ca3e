"""Log-likelihoods from hidden vectors, computed chunk by chunk.

The logits of all tokens never exist at the same time: with a large vocabulary they would take most
of the memory.
"""

import math

import torch
from torch import Tensor

from nmtkit.model.kernels.product_sizes import chunk_size
from nmtkit.model.transformer import Transformer


def token_log_probs(model: Transformer, hidden: Tensor, targets: Tensor) -> Tensor:
    """Compute the log-probability of each target, a natural logarithm, from its hidden vector.

    Args:
        model: projects hidden vectors to logits.
        hidden: (Y, D) from `Transformer.decode`.
        targets: (Y,) int64 ids.

    Returns:
        (Y,) float32, or float64 if the hidden vectors are.
    """
    wide = torch.promote_types(hidden.dtype, torch.float32)
    chunk = chunk_size(model.output_weight.shape[0], hidden.device.type)
    parts = [
        model.logits(vectors).log_softmax(-1, dtype=wide).gather(1, ids[:, None]).squeeze(1)
        for vectors, ids in zip(hidden.split(chunk), targets.split(chunk), strict=True)
    ]
    return torch.cat(parts)


def perplexity(nll: float) -> float:
    """Return exp(nll) of a negative log-likelihood per token; infinity if it overflows."""
    try:
        return math.exp(nll)
    except OverflowError:
        return math.inf
