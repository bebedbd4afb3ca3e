"""Label-smoothed cross-entropy of projected hidden vectors, with its gradient.

It is computed in chunks of tokens. The forward pass overwrites the logits of a chunk by their
gradient. So neither the logits (tokens, vocabulary) nor their gradient exist for more than a chunk.
Smoothing needs no pass over the vocabulary: it is linear in the hidden vector.
Source: paper, section 5.4; Szegedy et al. 2016, section 7 (mass spread over all V entries).
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtkit.model.kernels.training import (
    TRAINING_SIZES,
    is_low_precision_on_cpu,
    pad_rows,
    padded_size,
)

LOGIT_ALIGNMENT = {"cpu": 1, "cuda": 64}
"""The length of a row of logits in memory is a multiple of this, by device type.

Products whose rows are not aligned use slow kernels of cuBLAS: with an odd number of entries, an
update of `base` on an H200 took 1.25 times as long.
"""


class CrossEntropy(NamedTuple):
    """Sums over target tokens, in nats; only the first has a gradient.

    Attributes:
        smoothed: cross-entropy with the smoothed targets.
        nll: negative log-likelihood, which is the same without smoothing.
    """

    smoothed: Tensor
    nll: Tensor


def row_length(vocabulary_size: int, device: str) -> int:
    """Return the length in memory of a row of logits on a device type, at least the vocabulary."""
    alignment = LOGIT_ALIGNMENT[device]
    return -(-vocabulary_size // alignment) * alignment


def softmax_in_place(logits: Tensor, targets: Tensor) -> Tensor:
    """Overwrite logits by their softmax; return the log-probabilities of the targets.

    On a CPU every pass over the logits is in place, because a pass that writes to new memory takes
    three times as long. On a GPU one kernel reads them and another writes them.

    Args:
        logits: (C, V) logits of C tokens, overwritten by probabilities.
        targets: (C, 1) int64 ids.

    Returns:
        (C, 1) log-probability of each target, in float32 or float64.
    """
    precision = torch.promote_types(logits.dtype, torch.float32)
    if logits.is_cuda:
        log_probs = torch.log_softmax(logits, 1, dtype=precision)
        torch.exp(log_probs, out=logits)
        return log_probs.gather(1, targets)
    exact = logits.to(precision)
    highest = exact.amax(1, keepdim=True)
    of_targets = exact.gather(1, targets) - highest
    exponentials = exact.sub_(highest).exp_()
    totals = exponentials.sum(1, keepdim=True)
    logits.copy_(exponentials.mul_(totals.reciprocal()))
    return of_targets - totals.log()


def smoothed_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
    chunk_tokens: int,
) -> CrossEntropy:
    """Return the loss sums of predicting each target from its hidden vector.

    With q = (1 - s) onehot(y) + s/V and p = softmax(W h), the loss is -sum q log p
    = nll + s (W_y - mean(W)) . h.

    Args:
        hidden: (Y, D) decoder output; products are computed in its precision.
        weight: (V, D) output projection.
        targets: (Y,) int64 ids to predict.
        smoothing: s, probability mass spread evenly over the vocabulary.
        chunk_tokens: tokens per chunk.

    Returns:
        sums over the Y tokens.
    """
    # Gradients are off inside `forward`, which cannot find out whether they are needed.
    needs_gradient = torch.is_grad_enabled()
    smoothed, nll = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden,
        weight,
        targets,
        smoothing,
        chunk_tokens,
        needs_gradient,
    )
    return CrossEntropy(smoothed, nll)


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        chunk: int,
        needs_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        exact = torch.promote_types(hidden.dtype, torch.float32)
        is_padded = is_low_precision_on_cpu(hidden.device, hidden.dtype)
        num_rows = partial(padded_size, sizes=TRAINING_SIZES) if is_padded else int
        nll = torch.zeros((), dtype=exact, device=hidden.device)
        target_logits = torch.zeros_like(nll)
        weight_mean = weight.mean(0, dtype=exact)
        hidden_sum = hidden.sum(0, dtype=exact)
        # A frozen projection has no gradient; nor has a hidden vector if all below is frozen.
        needs_hidden, needs_weight = (needs_gradient and one for one in ctx.needs_input_grad[:2])
        num_columns = row_length(len(weight), hidden.device.type)
        hidden_gradient = weight_gradient = None
        if needs_hidden:
            hidden_gradient = torch.empty_like(hidden)
        if needs_weight:
            # Smoothing subtracts s/V times the sum of hidden vectors from each row.
            weight_gradient = (hidden_sum * (-smoothing / len(weight))).repeat(num_columns, 1)
        # Columns that align the rows of logits have a probability of 0, and no gradient.
        factor = pad_rows(weight, num_columns, hidden.dtype)
        block = hidden.new_empty(num_rows(min(chunk, len(hidden))), num_columns)
        for first in range(0, len(hidden), chunk):
            span = slice(first, first + chunk)
            num_tokens = len(targets[span])
            size = num_rows(num_tokens)
            vectors = pad_rows(hidden[span], size, hidden.dtype)
            target = pad_rows(targets[span, None], size, targets.dtype)
            # Padding rows have logits of 0, and add nothing.
            logits = torch.mm(vectors, factor.T, out=block[:size])
            logits[:, len(weight) :] = -torch.inf
            target_logits += logits.gather(1, target).sum(dtype=exact)
            log_probs = softmax_in_place(logits, target)
            nll -= log_probs[:num_tokens].sum()
            if needs_gradient:
                # The target's p - (1 - s) is computed before it is rounded.
                of_target = log_probs.exp() + (smoothing - 1.0)
                # In bfloat16 on a CPU, scatter_ takes 9 ms for 2 048 of 8 000 entries each.
                places = (torch.arange(size, device=hidden.device)[:, None], target)
                # Logits become their gradient.
                logits.index_put_(places, of_target.to(logits.dtype))
                if hidden_gradient is not None:
                    hidden_gradient[span] = (logits @ factor)[:num_tokens]
                if weight_gradient is not None:
                    _add_product(weight_gradient, logits.T, vectors)
        smoothed = nll + smoothing * (target_logits - weight_mean @ hidden_sum)
        if hidden_gradient is not None:
            hidden_gradient -= (smoothing * weight_mean).to(hidden.dtype)
        if weight_gradient is not None:
            weight_gradient = weight_gradient[: len(weight)].to(weight.dtype)
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(
        ctx: Any, smoothed: Tensor, _nll: Tensor
    ) -> tuple[Tensor | None, Tensor | None, None, None, None, None]:
        hidden_gradient, weight_gradient = (
            None if gradient is None else gradient * smoothed for gradient in ctx.saved_tensors
        )
        return hidden_gradient, weight_gradient, None, None, None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right, computed in their type, to a total of the same or a higher precision."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    elif left.is_cuda:  # one kernel, which does not round the product to their type
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total += left @ right
