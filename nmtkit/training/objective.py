"""The training objective: a batch in, sums of losses out.

Encoding, decoding and the loss are inside one module, so that it is the only thing that needs to be
compiled or wrapped for several devices.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmtkit.data.batch import Batch
from nmtkit.model.activations import chunk_size
from nmtkit.model.transformer import Transformer
from nmtkit.training.loss import Losses, normalize, smoothed_cross_entropy


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
            normalize: turns logits into probabilities where gradients are needed: the function of
                loss.py, or the same compiled.
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
