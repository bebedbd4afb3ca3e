"""The training objective: a batch in, sums of losses out.

Encoding, decoding and the loss are one module, the only one that is wrapped for several devices.

The loss is label-smoothed cross-entropy straight from hidden vectors, a chunk of tokens at a time.
The logits of a chunk become its gradient in place, during the forward pass, so neither logits
(tokens, vocabulary) nor their gradients ever exist whole. Smoothing costs no pass over the
vocabulary: it is linear in the hidden vector.
Source: paper, section 5.4; Szegedy et al. 2016, section 7 (mass spread over all V entries).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtkit.data.batch import Batch
from nmtkit.model.kernels.low_precision import filled, is_low_on_cpu
from nmtkit.model.kernels.rows import TRAINING, chunk_size, filled_size
from nmtkit.model.transformer import Transformer


class Losses(NamedTuple):
    """Sums over target tokens, in nats.

    Attributes:
        loss: the training objective, cross-entropy with the smoothed target.
        nll: negative log-likelihood without smoothing, what perplexity is made of.
    """

    loss: Tensor
    nll: Tensor


def normalize(logits: Tensor, targets: Tensor) -> Tensor:
    """Make probabilities of logits (C, V), in place.

    Each pass over them is in place too: on a CPU, one that writes elsewhere takes three times as
    long. On a GPU they are more passes than torch's own softmax takes, unless they are compiled.

    Args:
        logits: of C tokens.
        targets: (C, 1) int64 ids.

    Returns:
        (C, 1) log-probability of each target, in float32 at least.
    """
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    highest = exact.amax(1, keepdim=True)
    of_targets = exact.gather(1, targets) - highest
    exponentials = exact.sub_(highest).exp_()
    totals = exponentials.sum(1, keepdim=True)
    logits.copy_(exponentials.mul_(totals.reciprocal()))
    return of_targets - totals.log()


class Objective(nn.Module):
    """Label-smoothed cross-entropy of a Transformer on a batch."""

    def __init__(
        self,
        model: Transformer,
        label_smoothing: float,
        low_precision: torch.dtype | None,
        normalize: Callable[[Tensor, Tensor], Tensor] = normalize,
    ) -> None:
        """Store the parts.

        Args:
            model: its weights stay as they are.
            label_smoothing: the mass spread over the vocabulary.
            low_precision: the type that matrix products are computed in; None = the weights'.
            normalize: turns logits into probabilities where gradients are needed: the function
                above, or the same compiled.
        """
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.low_precision = low_precision
        self.normalize = normalize

    def forward(self, batch: Batch) -> Losses:
        """Return the loss sums over the batch's target tokens, end symbols counted."""
        weight = self.model.output_weight
        with torch.autocast(
            weight.device.type, self.low_precision, enabled=self.low_precision is not None
        ):
            memory = self.model.encode(batch.source)
            hidden = self.model.decode(batch.target_in, memory)
        if self.model.output_bias is not None:
            # A bias is one more column of weights, for a hidden number that is always 1.
            weight = torch.cat([weight, self.model.output_bias[:, None]], 1)
            hidden = torch.cat([hidden, hidden.new_ones(hidden.shape[0], 1)], 1)
        return smoothed_cross_entropy(
            hidden if self.low_precision is None else hidden.to(self.low_precision),
            weight,
            batch.target_out,
            self.label_smoothing,
            chunk_size(weight.shape[0], weight.device.type),
            self.normalize,
        )


def smoothed_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
    chunk_tokens: int,
    normalize_chunk: Callable[[Tensor, Tensor], Tensor] = normalize,
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
        normalize_chunk: computes what `normalize` does, where gradients are wanted.

    Returns:
        sums over the Y tokens; only `loss` has a gradient.
    """
    # Inside of forward gradients are always off, so that it cannot see whether any are wanted.
    needs_gradient = torch.is_grad_enabled()
    smoothed, nll = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden,
        weight,
        targets,
        smoothing,
        chunk_tokens,
        normalize_chunk if needs_gradient else None,
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
        normalize_chunk: Callable[[Tensor, Tensor], Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        exact = torch.promote_types(hidden.dtype, torch.float32)
        is_filled = is_low_on_cpu(hidden.device, hidden.dtype)
        num_rows = partial(filled_size, filling=TRAINING) if is_filled else int
        nll = torch.zeros((), dtype=exact, device=hidden.device)
        target_logits = torch.zeros_like(nll)
        weight_mean = weight.mean(0, dtype=exact)
        hidden_sum = hidden.sum(0, dtype=exact)
        if normalize_chunk:
            hidden_gradient = torch.empty_like(hidden)
            # What smoothing has each entry take from the hidden vectors of all tokens.
            weight_gradient = (hidden_sum * (-smoothing / weight.shape[0])).repeat(len(weight), 1)
        factor = weight.to(hidden.dtype)
        block = hidden.new_empty(num_rows(min(chunk, len(hidden))), len(weight))
        for first in range(0, len(hidden), chunk):
            span = slice(first, first + chunk)
            num_tokens = len(targets[span])
            size = num_rows(num_tokens)
            vectors = filled(hidden[span], size, hidden.dtype)
            target = filled(targets[span, None], size, targets.dtype)
            # Zeros, for tokens that fill up.
            logits = torch.mm(vectors, factor.T, out=block[:size])
            target_logits += logits.gather(1, target).sum(dtype=exact)
            log_probs = (normalize_chunk or normalize)(logits, target)
            nll -= log_probs[:num_tokens].sum()
            if normalize_chunk:
                # Of the target, the difference is taken before it is rounded.
                of_target = log_probs.exp() + (smoothing - 1.0)
                # In bfloat16 on a CPU, scatter_ takes 9 ms for 2 048 of 8 000 entries each.
                places = (torch.arange(size, device=hidden.device)[:, None], target)
                difference = logits.index_put_(places, of_target.to(logits.dtype))
                hidden_gradient[span] = (difference @ factor)[:num_tokens]
                _add_product(weight_gradient, difference.T, vectors)
        smoothed = nll + smoothing * (target_logits - weight_mean @ hidden_sum)
        if normalize_chunk:
            hidden_gradient -= (smoothing * weight_mean).to(hidden.dtype)
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
