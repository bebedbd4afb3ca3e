"""The training objective: a batch in, sums of losses out.

Encoding, decoding and the loss are inside one module, so that it is the only thing that needs to be
compiled or wrapped for several devices.
"""

from torch import nn

from nmtkit.data.batch import Batch
from nmtkit.model.transformer import Transformer
from nmtkit.training.loss import Losses, chunk_size, smoothed_cross_entropy


class Objective(nn.Module):
    """Label-smoothed cross-entropy of a Transformer on a batch."""

    def __init__(self, model: Transformer, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch: Batch) -> Losses:
        """Return the loss sums over the batch's target tokens, end symbols counted."""
        memory = self.model.encode(batch.source)
        hidden = self.model.decode(batch.target_in, memory)
        weight = self.model.output_weight
        return smoothed_cross_entropy(
            hidden, weight, batch.target_out, self.label_smoothing, chunk_size(weight.shape[0])
        )
