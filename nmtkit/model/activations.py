"""The memory that training needs beside the weights: what a forward pass keeps for the backward.

Counted from the shape, a token of the source and of the target each. Attention is taken to be
computed by a fused kernel, which does not keep its weights; without one - on a CPU where key and
value sizes differ, or with attention dropout - they come on top, as does what pads blocks. So do
the masks of the blocks of self-attention within a window.
"""

from dataclasses import dataclass

from nmtkit.config.training import ModelConfig
from nmtkit.model.cost import Shape

FLOAT32_BYTES, BFLOAT16_BYTES = 4, 2
MASK_BYTES = 1
"""Of an element that dropout may drop."""

INDEX_BYTES = 8
"""Of a token's id, and of its place in the blocks of attention."""

STATISTICS_BYTES = 8
"""LayerNorm keeps a mean and a reciprocal deviation, in float32."""


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
    last_norm = vector + STATISTICS_BYTES if config.norm == "pre" else 0
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
    # The result of relu tells its gradient; silu's needs what it was computed of.
    kept = product_bytes * inner * (2 if config.activation == "silu" else 1)
    dropout = (MASK_BYTES + product_bytes) * inner if config.activation_dropout else 0
    return kept + dropout
