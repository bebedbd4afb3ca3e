"""The memory of training, counted from a model's shape: activations, and the peak of an update.

Activations are what a forward pass keeps for the backward pass, per source and per target token.
The count supposes that a fused kernel computes attention and keeps no weights. Without one - on a
CPU in bfloat16, where key and value sizes differ, or with attention dropout - the weights and the
padding of blocks add to it. So do the masks of windowed self-attention.
"""

from dataclasses import dataclass

from nmtkit.config.training import ACTIVATIONS, NORMS, ModelConfig
from nmtkit.model.estimate.cost import Parameters, Shape

FLOAT32_BYTES, BFLOAT16_BYTES = 4, 2
MASK_BYTES = 1
"""Per element that dropout may drop."""

INDEX_BYTES = 8
"""Per token's id, and per token's place in the blocks of attention."""

NUM_MOMENTS = 2
"""Moments of Adam, each as large as the weights."""

STATISTICS_BYTES = 8
"""LayerNorm keeps a mean and a reciprocal deviation, in float32."""


@dataclass(frozen=True)
class TrainingMemory:
    """The memory of an update that is a single micro-batch.

    With several, gradients stay from one to the next: add `gradients` bytes.

    Attributes:
        config: the shape.
        parameters: their numbers.
        target_size: V, entries of the target vocabulary.
        product_bytes: of a number in matrix products: 4, or 2 in bfloat16.
        recompute: as with --recompute.
        chunk_tokens: tokens whose logits exist at the same time; see `kernels/rows.py`.
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
        """Return the bytes needed at most, with those of weights and of Adam's moments.

        The peak is in the loss, which has logits next to all activations, or at the end of the
        backward pass, when all gradients exist.

        Args:
            source_tokens, target_tokens: of the update, end symbols counted.
        """
        projection = FLOAT32_BYTES * self.target_size * self.config.model_size
        kept = self._kept(source_tokens, target_tokens)
        in_loss = kept + self._logits(target_tokens) + projection
        if self.product_bytes < FLOAT32_BYTES:
            in_loss += projection // 2  # rounded
        # A tied projection has one gradient per use until they are added up.
        at_end = self.gradients + 2 * projection
        if self.recompute:
            source_layer, target_layer = self._layers(source_tokens, target_tokens)
            in_loss = max(in_loss, kept + target_layer + projection)
            at_end += source_layer
        return (1 + NUM_MOMENTS) * self.gradients + max(in_loss, at_end)

    def largest_batch(self, memory: float) -> int:
        """Return the largest number of tokens per side that fits into `memory` bytes, or 0."""
        fits, above = 0, 1
        while self.peak(above, above) <= memory:
            fits, above = above, 2 * above
        while above - fits > 1:
            middle = (fits + above) // 2
            fits, above = (middle, above) if self.peak(middle, middle) <= memory else (fits, middle)
        return fits

    def _kept(self, source_tokens: int, target_tokens: int) -> int:
        """Return the bytes kept for the backward pass."""
        per_token = activations(self.config, self.product_bytes, self.recompute)
        kept = source_tokens * per_token.source + target_tokens * per_token.target
        if self.product_bytes < FLOAT32_BYTES and not self.recompute:  # and rounded weights
            kept += self.product_bytes * (self.parameters.encoder + self.parameters.decoder)
        return kept

    def _layers(self, source_tokens: int, target_tokens: int) -> tuple[int, int]:
        """Return the bytes needed to compute again a layer of the encoder, and of the decoder."""
        whole = activations(self.config, self.product_bytes, recompute=False)
        # Gradients of inner vectors, after and before the activation.
        inner = 2 * self.product_bytes * self.config.feed_forward_size
        return (
            source_tokens * (whole.source // self.config.encoder_layers + inner),
            target_tokens * (whole.target // self.config.decoder_layers + inner),
        )

    def _logits(self, target_tokens: int) -> int:
        """Return the bytes of one chunk's logits, and of what is computed from them."""
        # They become probabilities and their gradient in place, after a copy in float32.
        exact = FLOAT32_BYTES if self.product_bytes < FLOAT32_BYTES else 0
        size = min(target_tokens, self.chunk_tokens) * self.target_size
        return size * (self.product_bytes + exact)


@dataclass(frozen=True)
class Activations:
    """Bytes kept for the backward pass.

    Attributes:
        source, target: per token of a side.
    """

    source: int
    target: int


def activations(config: ModelConfig, product_bytes: int, recompute: bool) -> Activations:
    """Count the bytes that a forward pass in training keeps.

    Args:
        config: the shape.
        product_bytes: of a number in matrix products: 4, or 2 in bfloat16, where LayerNorms and
            residual connections stay in float32.
        recompute: layers keep their inputs alone, as with --recompute; the rest is needed of one
            layer at a time, and not counted.
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
    # Per sub-layer: dropout's mask, LayerNorm's input, and its output as a factor of products.
    residual = dropped + vector + STATISTICS_BYTES + product
    feed_forward = _feed_forward(config, product_bytes)
    self_attention = product_bytes * (2 * sizes.keys + sizes.values)
    memory_query = product_bytes * sizes.keys
    # The context is kept as the kernel returns it, and packed; per head, a sum of exponentials.
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
    """Return the bytes per token of the inner vectors of a feed-forward layer."""
    inner = config.feed_forward_size
    kept = product_bytes * inner * (2 if ACTIVATIONS[config.activation].keeps_input else 1)
    dropout = (MASK_BYTES + product_bytes) * inner if config.activation_dropout else 0
    return kept + dropout
