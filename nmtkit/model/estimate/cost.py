"""What a model costs, counted from its shape: parameters, and floating-point operations.

Operations are those of matrix products, a multiplication and an addition each; the rest is small.
A training pass takes three times those of a forward pass: the backward pass computes the gradients
of both factors of each product. Of self-attention within a window, the products are counted that
it needs; computing it by blocks takes more.
"""

from dataclasses import dataclass

from nmtkit.config.training import NORMS, POSITIONS, ModelConfig

BACKWARD_AND_FORWARD = 3


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters by part.

    Attributes:
        embeddings: token embeddings, learned positions and the output projection with its bias,
            those that are shared once.
        encoder, decoder: layers, with the last LayerNorm where there is one.
    """

    embeddings: int
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embeddings + self.encoder + self.decoder


@dataclass(frozen=True)
class Work:
    """What passes through a model.

    Attributes:
        source_tokens, target_tokens: how many, end symbols counted.
        source_length, target_length: tokens of a sentence, on average; what attention takes.
    """

    source_tokens: float
    target_tokens: float
    source_length: float
    target_length: float


@dataclass(frozen=True)
class Shape:
    """Sizes of a layer's matrices: keys, values and the model, all heads together."""

    d: int
    keys: int
    values: int
    inner: int

    @staticmethod
    def of(config: ModelConfig) -> "Shape":
        """Return those of a model, with the sizes that it leaves to be d / heads."""
        own = config.model_size // config.heads
        return Shape(
            d=config.model_size,
            keys=config.heads * (config.key_size or own),
            values=config.heads * (config.value_size or own),
            inner=config.feed_forward_size,
        )

    @property
    def attention(self) -> int:
        """Entries of the projections of one attention."""
        return self.d * (2 * self.keys + self.values) + self.values * self.d

    @property
    def feed_forward(self) -> int:
        """Entries of the two matrices of a feed-forward layer."""
        return 2 * self.d * self.inner


def count_parameters(
    config: ModelConfig, source_size: int, target_size: int, is_shared: bool
) -> Parameters:
    """Count the parameters of a model, from its shape alone.

    Args:
        config: the shape.
        source_size, target_size: entries of the two vocabularies.
        is_shared: both sides use one vocabulary.
    """
    shape = Shape.of(config)
    norm = 2 * config.model_size
    attention = shape.attention + 2 * shape.keys + shape.values + config.model_size
    feed_forward = shape.feed_forward + shape.inner + config.model_size
    last_norm = norm if NORMS[config.norm].has_final_norm else 0
    output_bias = target_size if config.output_bias else 0
    matrices = [target_size]
    if not (config.tie_embeddings and is_shared):
        matrices.append(source_size)
    if not config.tie_embeddings:
        matrices.append(target_size)
    if POSITIONS[config.positions].is_learned:
        matrices += 2 * [config.max_positions]
    return Parameters(
        embeddings=sum(matrices) * config.model_size + output_bias,
        encoder=config.encoder_layers * (attention + feed_forward + 2 * norm) + last_norm,
        decoder=config.decoder_layers * (2 * attention + feed_forward + 3 * norm) + last_norm,
    )


def training_operations(config: ModelConfig, target_size: int, work: Work) -> float:
    """Count the floating-point operations of a forward and backward pass; see `operations`."""
    return BACKWARD_AND_FORWARD * operations(config, target_size, work)


def operations(config: ModelConfig, target_size: int, work: Work) -> float:
    """Count the floating-point operations of a forward pass.

    What does no more for the result is not counted: products with padding, and layers that are
    computed again to save memory.

    Args:
        config: the shape.
        target_size: V, entries of the target vocabulary.
        work: what passes through.
    """
    shape = Shape.of(config)
    width = shape.keys + shape.values
    window = config.window
    source_reach = min(work.source_length, 2 * (window // 2) + 1) if window else work.source_length
    target_reach = min(work.target_length, window) if window else work.target_length
    encoder = shape.attention + shape.feed_forward + source_reach * width
    projected_memory = config.model_size * width
    decoder = (
        shape.attention
        + target_reach * width
        + (shape.attention - projected_memory)
        + work.source_length * width
        + shape.feed_forward
    )
    products = (
        work.source_tokens
        * (config.encoder_layers * encoder + config.decoder_layers * projected_memory)
        + work.target_tokens * config.decoder_layers * decoder
        + work.target_tokens * config.model_size * target_size
    )
    return 2.0 * products
