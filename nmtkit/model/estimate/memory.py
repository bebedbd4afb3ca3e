"""The memory of training, counted from a model's shape: activations, and the peak of an update.

Activations are the tensors that a forward pass saves for the backward pass, per source and per
target token. The count assumes that a fused kernel computes attention and saves no weights. Other
kernels also save the weights and the padding of blocks: on a CPU in bfloat16, with different key
and value sizes, or with attention dropout. Windowed self-attention also saves its masks.
"""

from dataclasses import dataclass

from nmtkit.config.training import ACTIVATIONS, NORMS, ModelConfig
from nmtkit.model.estimate.cost import Parameters, Shape

FLOAT32_BYTES, BFLOAT16_BYTES = 4, 2
MASK_BYTES = 1
"""Per element of a dropout mask."""

INDEX_BYTES = 8
"""Per token: its id, or its row in the padded blocks of attention."""

NUM_MOMENTS = 2
"""Number of moments of Adam, each as large as the weights."""

STATISTICS_BYTES = 8
"""LayerNorm saves a mean and a reciprocal standard deviation per token, in float32."""


@dataclass(frozen=True)
class TrainingMemory:
    """The memory of an update of one micro-batch.

    With several micro-batches, gradients accumulate: add `gradients` bytes.

    Attributes:
        config: the shape.
        parameters: numbers of parameters.
        target_size: V, entries of the target vocabulary.
        product_bytes: bytes per number in matrix products: 4, or 2 in bfloat16.
        activation_checkpointing: as with --activation-checkpointing.
        chunk_tokens: tokens whose logits exist at the same time; see `kernels/product_sizes.py`.
    """

    config: ModelConfig
    parameters: Parameters
    target_size: int
    product_bytes: int
    activation_checkpointing: bool
    chunk_tokens: int

    @property
    def gradients(self) -> int:
        """Bytes of the gradients of all weights."""
        return FLOAT32_BYTES * self.parameters.total

    def peak(self, source_tokens: int, target_tokens: int) -> int:
        """Return the peak in bytes, including weights and Adam's moments.

        The peak is in the loss, when logits and all activations exist, or at the end of the
        backward pass, when all gradients exist.

        Args:
            source_tokens, target_tokens: tokens of the update, end symbols counted.
        """
        projection = FLOAT32_BYTES * self.target_size * self.config.model_size
        kept = self._kept(source_tokens, target_tokens)
        in_loss = kept + self._logits(target_tokens) + projection
        if self.product_bytes < FLOAT32_BYTES:
            in_loss += projection // 2  # the copy in bfloat16
        # A tied projection has one gradient per use until they are summed.
        at_end = self.gradients + 2 * projection
        if self.activation_checkpointing:
            source_layer, target_layer = self._layers(source_tokens, target_tokens)
            in_loss = max(in_loss, kept + target_layer + projection)
            at_end += source_layer
        return (1 + NUM_MOMENTS) * self.gradients + max(in_loss, at_end)

    def largest_batch(self, memory: float) -> int:
        """Return the largest number of source and of target tokens for `memory` bytes, or 0."""
        fits, above = 0, 1
        while self.peak(above, above) <= memory:
            fits, above = above, 2 * above
        while above - fits > 1:
            middle = (fits + above) // 2
            fits, above = (middle, above) if self.peak(middle, middle) <= memory else (fits, middle)
        return fits

    def _kept(self, source_tokens: int, target_tokens: int) -> int:
        """Return the bytes saved for the backward pass."""
        per_token = activations(self.config, self.product_bytes, self.activation_checkpointing)
        kept = source_tokens * per_token.source + target_tokens * per_token.target
        if self.product_bytes < FLOAT32_BYTES and not self.activation_checkpointing:
            # Copies of the weights in bfloat16.
            kept += self.product_bytes * (self.parameters.encoder + self.parameters.decoder)
        return kept

    def _layers(self, source_tokens: int, target_tokens: int) -> tuple[int, int]:
        """Return the bytes to recompute one layer of the encoder, and one of the decoder."""
        whole = activations(self.config, self.product_bytes, activation_checkpointing=False)
        # Gradients of the inner vectors, before and after the activation.
        inner = 2 * self.product_bytes * self.config.feed_forward_size
        return (
            source_tokens * (whole.source // self.config.encoder_layers + inner),
            target_tokens * (whole.target // self.config.decoder_layers + inner),
        )

    def _logits(self, target_tokens: int) -> int:
        """Return the bytes of the logits of one chunk, and of the tensors computed from them."""
        # Probabilities and gradients overwrite the logits, in bfloat16 after a copy in float32.
        float32_copy = FLOAT32_BYTES if self.product_bytes < FLOAT32_BYTES else 0
        size = min(target_tokens, self.chunk_tokens) * self.target_size
        return size * (self.product_bytes + float32_copy)


@dataclass(frozen=True)
class Activations:
    """Bytes saved for the backward pass.

    Attributes:
        source, target: per source token, per target token.
    """

    source: int
    target: int


def activations(
    config: ModelConfig, product_bytes: int, activation_checkpointing: bool
) -> Activations:
    """Count the bytes per token that a forward pass in training saves.

    Args:
        config: the shape.
        product_bytes: bytes per number in matrix products: 4, or 2 in bfloat16. LayerNorms and
            residual connections are in float32 in both cases.
        activation_checkpointing: layers keep only their inputs; the rest is needed for one layer
            at a time, and not counted.
    """
    sizes, vector = Shape.of(config), FLOAT32_BYTES * config.model_size
    product = product_bytes * config.model_size
    dropped = MASK_BYTES * config.model_size if config.dropout else 0
    last_norm = vector + STATISTICS_BYTES if NORMS[config.norm].has_final_norm else 0
    # The sum of embedding and position counts as the input of the first layer.
    entry = INDEX_BYTES + dropped
    if activation_checkpointing:
        return Activations(
            source=entry + config.encoder_layers * vector + last_norm + vector,
            target=entry + config.decoder_layers * vector + last_norm + product,
        )
    # Per sub-layer: the dropout mask, LayerNorm's input, and its output for matrix products.
    residual = dropped + vector + STATISTICS_BYTES + product
    feed_forward = _feed_forward(config, product_bytes)
    self_attention = product_bytes * (2 * sizes.keys + sizes.values)
    memory_query = product_bytes * sizes.keys
    # The context is saved unpacked and packed; per head, a sum of exponentials in float32.
    context = 2 * product_bytes * sizes.values + FLOAT32_BYTES * config.heads
    encoder = self_attention + context + feed_forward + 2 * residual
    decoder = self_attention + memory_query + 2 * context + feed_forward + 3 * residual
    # In bfloat16 each layer of the decoder has its own rounded copy of the memory.
    is_rounded = product_bytes < FLOAT32_BYTES
    num_memories = config.decoder_layers if is_rounded else 1
    memory = config.decoder_layers * product_bytes * (sizes.keys + sizes.values)
    return Activations(
        source=entry
        + config.encoder_layers * encoder
        + last_norm
        + memory
        + num_memories * product,
        # The loss saves the gradient of the hidden vectors; target ids are read twice.
        target=entry + config.decoder_layers * decoder + last_norm + product + INDEX_BYTES,
    )


def _feed_forward(config: ModelConfig, product_bytes: int) -> int:
    """Return the bytes saved per token for the inner vectors of a feed-forward network."""
    inner = config.feed_forward_size
    kept = product_bytes * inner * (2 if ACTIVATIONS[config.activation].keeps_input else 1)
    dropout = (MASK_BYTES + product_bytes) * inner if config.activation_dropout else 0
    return kept + dropout
