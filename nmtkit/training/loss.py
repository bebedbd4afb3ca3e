"""Label-smoothed cross-entropy straight from hidden vectors, a chunk of tokens at a time.

The logits of a chunk become its gradient in place, during the forward pass, so that neither
[tokens x vocabulary] logits nor their gradients ever exist whole. Smoothing costs no pass over the
vocabulary: it is linear in the hidden vector.
Source: paper, section 5.4; Szegedy et al. 2016, section 7 (mass spread over all V entries).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtkit.model.linear import filled, is_low_on_cpu
from nmtkit.model.rows import filled_size


class Losses(NamedTuple):
    """Sums over target tokens, in nats.

    Attributes:
        smoothed: cross-entropy with the smoothed target, what training minimises.
        nll: negative log-likelihood without smoothing, what perplexity is made of.
    """

    smoothed: Tensor
    nll: Tensor


class Terms(NamedTuple):
    """What a chunk of C logits (C, V) gives.

    Attributes:
        log_probs: (C, 1) log-probability of each target, in float32 at least.
        probs: (C, V) all probabilities, in the precision of the logits.
    """

    log_probs: Tensor
    probs: Tensor


def compute_terms(logits: Tensor, targets: Tensor) -> Terms:
    """Compute the terms of logits (C, V) and targets (C, 1)."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    log_probs = torch.log_softmax(logits, dim=1, dtype=exact)
    of_targets = log_probs.gather(1, targets)
    return Terms(of_targets, log_probs.exp_().to(logits.dtype))


def smoothed_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
    chunk_tokens: int,
    terms: Callable[[Tensor, Tensor], Terms] = compute_terms,
) -> Losses:
    """Sum the loss of predicting each target from its hidden vector.

    With q = (1 - s) onehot(y) + s/V and p = softmax(W h), the loss is -sum q log p
    = nll + s (W_y - mean(W)) . h.

    Args:
        hidden: (Y, D) decoder output; products are computed in its precision.
        weight: (V, D) output projection.
        targets: (Y,) int64 ids to predict.
        smoothing: s, the mass spread evenly over the vocabulary.
        chunk_tokens: tokens whose logits exist at the same time.
        terms: computes what gradients need, as `compute_terms` does.

    Returns:
        sums over the Y tokens; only `smoothed` has a gradient.
    """
    # Inside of forward gradients are always off, so that it cannot see whether any are wanted.
    needs_gradient = torch.is_grad_enabled()
    smoothed, nll = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, targets, smoothing, chunk_tokens, terms if needs_gradient else None
    )
    return Losses(smoothed, nll)


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        chunk: int,
        terms: Callable[[Tensor, Tensor], Terms] | None,
    ) -> tuple[Tensor, Tensor]:
        exact = torch.promote_types(hidden.dtype, torch.float32)
        fills = is_low_on_cpu(hidden.device, hidden.dtype)
        nll = torch.zeros((), dtype=exact, device=hidden.device)
        target_logits = torch.zeros_like(nll)
        hidden_gradient = torch.empty_like(hidden) if terms else None
        weight_gradient = torch.zeros_like(weight, dtype=exact) if terms else None
        factor = weight.to(hidden.dtype)
        for first in range(0, hidden.shape[0], chunk):
            span = slice(first, first + chunk)
            num_tokens = len(targets[span])
            size = filled_size(num_tokens) if fills else num_tokens
            vectors = filled(hidden[span], size, hidden.dtype)
            target = filled(targets[span, None], size, targets.dtype)
            logits = vectors @ factor.T  # zeros for tokens that fill up
            target_logits += logits.gather(1, target).sum(dtype=exact)
            if terms is None or hidden_gradient is None or weight_gradient is None:
                log_probs = torch.log_softmax(logits, dim=1, dtype=exact)
                nll -= log_probs.gather(1, target)[:num_tokens].sum()
            else:
                log_probs, difference = terms(logits, target)
                nll -= log_probs[:num_tokens].sum()
                # Of the target, the difference is taken before it is rounded.
                of_target = log_probs.exp() + (smoothing - 1.0)
                difference.scatter_(1, target, of_target.to(difference.dtype))
                difference[num_tokens:] = 0
                hidden_gradient[span] = (difference @ factor)[:num_tokens]
                _add_product(weight_gradient, difference.T, vectors)
        weight_mean = weight.mean(0, dtype=exact)
        hidden_sum = hidden.sum(0, dtype=exact)
        smoothed = nll + smoothing * (target_logits - weight_mean @ hidden_sum)
        if hidden_gradient is not None and weight_gradient is not None:
            hidden_gradient -= (smoothing * weight_mean).to(hidden.dtype)
            weight_gradient -= smoothing / weight.shape[0] * hidden_sum
            ctx.save_for_backward(hidden_gradient, weight_gradient.to(weight.dtype))
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(
        ctx: Any, smoothed: Tensor, _nll: Tensor
    ) -> tuple[Tensor, Tensor, None, None, None, None]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * smoothed, weight_gradient * smoothed, None, None, None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right, computed in their own precision, to a total that may be exacter."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    elif left.is_cuda:  # one kernel rounds nothing to the precision of the two
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total += left @ right
