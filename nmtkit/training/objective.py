"""The training objective: the losses of a batch.

Encoding, decoding and the losses are one module, which DDP wraps. A new loss is an entry of
`LOSSES` and a sum in `Objective.forward`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmtkit.config.metrics import NLL
from nmtkit.config.training import TrainingConfig
from nmtkit.data.batch import Batch
from nmtkit.model.attention import recorded
from nmtkit.model.cost import chunk_size
from nmtkit.model.kernels.cross_entropy import smoothed_cross_entropy
from nmtkit.model.transformer import Transformer
from nmtkit.packed import Packed

BIAS_COLUMNS = 8
"""Columns by which the output bias widens the output projection in the loss."""


@dataclass(frozen=True)
class Loss:
    """A sum that `Objective` computes of each batch.

    Attributes:
        weight: its factor in the objective, given the settings; 0 = it is only measured.
        count: number of units of a batch over which it is a sum. The sum of an update, over all
            ranks, is divided by the sum of these.
    """

    weight: Callable[[TrainingConfig], float]
    count: Callable[[Batch], int]


def num_target_tokens(batch: Batch) -> int:
    """Return the number of target tokens of a batch, end symbols included."""
    return len(batch.target_out)


GUIDED_ALIGNMENT = "guided_alignment"

LOSSES = {
    "cross_entropy": Loss(weight=lambda _: 1.0, count=num_target_tokens),
    NLL: Loss(weight=lambda _: 0.0, count=num_target_tokens),
    GUIDED_ALIGNMENT: Loss(
        weight=lambda config: config.guided_alignment_weight, count=num_target_tokens
    ),
}
"""The sums of a batch by name, in nats: cross-entropy with smoothed targets; the negative
log-likelihood without smoothing, whose mean gives the perplexity; and over the target pieces with
links, the negative mean of the log-weights of their links in the attention head of alignments, when
they are predicted. Source of the last: Garg et al. 2019 (arXiv 1909.02074), equation 2."""


class Losses(NamedTuple):
    """The losses of a batch.

    Attributes:
        loss: () the training objective: the weighted sum of `sums`, with a gradient.
        sums: () the sum of each of `LOSSES`, without gradients.
    """

    loss: Tensor
    sums: dict[str, Tensor]


class Objective(nn.Module):
    """The losses of a Transformer on a batch."""

    def __init__(
        self,
        model: Transformer,
        config: TrainingConfig,
        low_precision: torch.dtype | None,
    ) -> None:
        """Store the parts.

        Args:
            model: model to train or validate, on its device.
            config: settings of the losses.
            low_precision: type of matrix products; None = type of the weights.
        """
        super().__init__()
        self.model = model
        self.label_smoothing = config.label_smoothing
        self.factors = {name: one.weight(config) for name, one in LOSSES.items()}
        self.low_precision = low_precision
        weight = model.output_weight
        self.chunk_tokens = chunk_size(len(weight), weight.device.type)

    def forward(self, batch: Batch, counts: Mapping[str, int] | None = None) -> Losses:
        """Return the losses of a batch.

        Args:
            batch: the pairs.
            counts: units of the whole update for each of `LOSSES`, over all ranks. The caller
                divides the gradients by target tokens, so terms that are sums over other units are
                scaled here. None = all are sums over target tokens.
        """
        weight = self.model.output_weight
        with torch.autocast(
            weight.device.type, self.low_precision, enabled=self.low_precision is not None
        ):
            memory = self.model.encode(batch.source)
            hidden, guided_alignment = self._decode(batch, memory)
        if self.model.output_bias is not None:
            # A bias is one more column of weights, for a hidden feature that is always 1. Columns
            # of zeros keep rows aligned for tensor cores.
            bias = self.model.output_bias[:, None]
            weight = torch.cat([weight, F.pad(bias, (0, BIAS_COLUMNS - 1))], 1)
            hidden = F.pad(hidden, (0, BIAS_COLUMNS), value=1.0)
        cross_entropy, nll = smoothed_cross_entropy(
            hidden if self.low_precision is None else hidden.to(self.low_precision),
            weight,
            batch.target_out,
            self.label_smoothing,
            self.chunk_tokens,
        )
        sums = {"cross_entropy": cross_entropy, NLL: nll, GUIDED_ALIGNMENT: guided_alignment}
        scales = {name: counts[NLL] / max(1, counts[name]) for name in counts} if counts else {}
        terms = [
            sums[name] * (factor * scales.get(name, 1.0))
            for name, factor in self.factors.items()
            if factor
        ]
        loss = torch.stack(terms).sum()
        return Losses(loss, {name: one.detach() for name, one in sums.items()})

    def _decode(self, batch: Batch, memory: Packed) -> tuple[Tensor, Tensor]:
        """Return the hidden vectors (Y, D) of a batch, and the loss () of its links."""
        model, links, trained = self.model, batch.links, self.model.config.trained_head
        if links is None or trained is None or not self.factors[GUIDED_ALIGNMENT]:
            return model.decode(batch.target_in, memory), memory.values.new_zeros(())
        layer, head = trained
        attention = model.decoder[layer].memory_attention
        is_full = model.config.full_context_alignment
        with recorded(attention, lambda x, **_: x) as inputs:
            hidden = model.decode(batch.target_in, memory)
            if is_full:
                model.decode(batch.target_in, memory, layer + 1, is_causal=False)
        # Not within the pass, which activation checkpointing repeats.
        log_weights = attention.log_weights(inputs[-1], batch.target_in.layout, memory, head)
        # The end symbol has no links, so the step that reads a piece is of the same pair.
        of_links = log_weights[links.targets + int(is_full), links.sources]
        return hidden, -(of_links * links.weights).sum()
