"""The memory of training: what a forward pass keeps for the backward, and the peak of an update.

Both are counted from the shape, what is kept a token of the source and of the target each.
Attention is taken to be computed by a fused kernel, which does not keep its weights; without one -
on a CPU in bfloat16, where key and value sizes differ, or with attention dropout - they come on
top, as does what pads blocks. So do the masks of the blocks of self-attention within a window.
"""

from dataclasses import dataclass

from nmtkit.config.training import ACTIVATIONS, NORMS, ModelConfig
from nmtkit.model.estimate.cost import Parameters, Shape

FLOAT32_BYTES, BFLOAT16_BYTES = 4, 2
MASK_BYTES = 1
"""Of an element that dropout may drop."""

INDEX_BYTES = 8
"""Of a token's id, and of its place in the blocks of attention."""

NUM_MOMENTS = 2
"""Moments of Adam, each as large as the weights."""

STATISTICS_BYTES = 8
"""LayerNorm keeps a mean and a reciprocal deviation, in float32."""


@dataclass(frozen=True)
class TrainingMemory:
    """What an update whose pairs are computed at once needs.

    With several micro-batches, gradients stay from one to the next: add `gradients` bytes.

    Attributes:
        config: the shape.
        parameters: their numbers.
        target_size: V, entries of the target vocabulary.
        product_bytes: of a number in matrix products: 4, or 2 in bfloat16.
        recompute: as with --recompute.
        chunk_tokens: whose logits exist at the same time; see `chunk_size`.
    """

    config: ModelConfig
    parameters: Parameters
    target_size: int
    product_bytes: int
    recompute: bool
    chunk_tokens: int

    @property
    def gradients(self) -> int:
        """Bytes of the gradients of all weights."""
        return FLOAT32_BYTES * self.parameters.total

    def peak(self, source_tokens: int, target_tokens: int) -> int:
        """Return the bytes needed at most, those of weights and of Adam's moments counted.

        That is in the loss, which has logits beside all that is kept, or at the end of the
        backward pass, when all gradients are there.

        Args:
            source_tokens, target_tokens: of the update, end symbols counted.
        """
        projection = FLOAT32_BYTES * self.target_size * self.config.model_size
        kept = self._kept(source_tokens, target_tokens)
        in_loss = kept + self._logits(target_tokens) + projection
        if self.product_bytes < FLOAT32_BYTES:
            in_loss += projection // 2  # rounded
        # A tied projection has its gradient of each use until they are added up.
        at_end = self.gradients + 2 * projection
        if self.recompute:
            source_layer, target_layer = self._layers(source_tokens, target_tokens)
            in_loss = max(in_loss, kept + target_layer + projection)
            at_end += source_layer
        return (1 + NUM_MOMENTS) * self.gradients + max(in_loss, at_end)

    def largest_batch(self, memory: float) -> int:
        """Return how many tokens a side an update can have, or 0, with so many bytes."""
        fits, above = 0, 1
        while self.peak(above, above) <= memory:
            fits, above = above, 2 * above
        while above - fits > 1:
            middle = (fits + above) // 2
            fits, above = (middle, above) if self.peak(middle, middle) <= memory else (fits, middle)
        return fits

    def _kept(self, source_tokens: int, target_tokens: int) -> int:
        """Return the bytes that are kept for the backward pass."""
        a_token = activations(self.config, self.product_bytes, self.recompute)
        kept = source_tokens * a_token.source + target_tokens * a_token.target
        if self.product_bytes < FLOAT32_BYTES and not self.recompute:  # and rounded weights
            kept += self.product_bytes * (self.parameters.encoder + self.parameters.decoder)
        return kept

    def _layers(self, source_tokens: int, target_tokens: int) -> tuple[int, int]:
        """Return the bytes that a layer of encoder and of decoder needs to be computed again."""
        whole = activations(self.config, self.product_bytes, recompute=False)
        # Of inner vectors, gradients behind and before the activation.
        inner = 2 * self.product_bytes * self.config.feed_forward_size
        return (
            source_tokens * (whole.source // self.config.encoder_layers + inner),
            target_tokens * (whole.target // self.config.decoder_layers + inner),
        )

    def _logits(self, target_tokens: int) -> int:
        """Return the bytes of logits, and of what is made of them, that there are at a time."""
        # They become probabilities, and their own gradient, in place, but in float32.
        exact = FLOAT32_BYTES if self.product_bytes < FLOAT32_BYTES else 0
        size = min(target_tokens, self.chunk_tokens) * self.target_size
        return size * (self.product_bytes + exact)


@dataclass(frozen=True)
class Activations:
    """Bytes that are kept for the backward pass.

    Attributes:
        source, target: a token of a side.
    """

    source: int
    target: int


def activations(config: ModelConfig, product_bytes: int, recompute: bool) -> Activations:
    """Count the bytes that a forward pass in training keeps.

    Args:
        config: the shape.
        product_bytes: of a number in matrix products: 4, or 2 in bfloat16, where LayerNorms and
            residual connections stay in float32.
        recompute: layers keep their inputs alone, as with --recompute; one layer at a time needs
            the rest beside.
    """
    sizes, vector = Shape.of(config), FLOAT32_BYTES * config.model_size
    product = product_bytes * config.model_size
    dropped = MASK_BYTES * config.model_size if config.dropout else 0
    last_norm = vector + STATISTICS_BYTES if NORMS[config.norm].has_final_norm else 0
    # The sum of embedding and position is the first layer's input.
    entry = INDEX_BYTES + dropped
    if recompute:
        return Activations(
            source=entry + config.encoder_layers * vector + last_norm + vector,
            target=entry + config.decoder_layers * vector + last_norm + product,
        )
    # Of each sub-layer: dropout's mask, LayerNorm's input, and its output as a factor of products.
    residual = dropped + vector + STATISTICS_BYTES + product
    feed_forward = _feed_forward(config, product_bytes)
    self_attention = product_bytes * (2 * sizes.keys + sizes.values)
    memory_query = product_bytes * sizes.keys
    # The context is kept as the kernel returns it, and packed. Of each head, the sum of exps.
    context = 2 * product_bytes * sizes.values + FLOAT32_BYTES * config.heads
    encoder = self_attention + context + feed_forward + 2 * residual
    decoder = self_attention + memory_query + 2 * context + feed_forward + 3 * residual
    # In bfloat16 each layer of the decoder rounds the memory for itself.
    is_rounded = product_bytes < FLOAT32_BYTES
    num_memories = config.decoder_layers if is_rounded else 1
    memory = config.decoder_layers * product_bytes * (sizes.keys + sizes.values)
    return Activations(
        source=entry
        + config.encoder_layers * encoder
        + last_norm
        + memory
        + num_memories * product,
        # The loss keeps the gradient of the last vectors, and the target's ids are read twice.
        target=entry + config.decoder_layers * decoder + last_norm + product + INDEX_BYTES,
    )


def _feed_forward(config: ModelConfig, product_bytes: int) -> int:
    """Return the bytes of the inner vectors of a feed-forward layer, a token."""
    inner = config.feed_forward_size
    kept = product_bytes * inner * (2 if ACTIVATIONS[config.activation].keeps_input else 1)
    dropout = (MASK_BYTES + product_bytes) * inner if config.activation_dropout else 0
    return kept + dropout
