"""Parameters and floating-point operations of a model, counted from its shape.

Operations are the multiplications and additions of matrix products; the rest is small. Training
takes three times those of a forward pass, as the backward pass computes the gradients of both
factors of each product. Self-attention within a window counts the products within reach; its
blocks compute more.
"""

from dataclasses import dataclass

from nmtkit.config.training import NORMS, POSITIONS, ModelConfig

BACKWARD_AND_FORWARD = 3


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters by part.

    Attributes:
        embeddings: token embeddings, learned positions and the output projection with its bias;
            a shared matrix counts once.
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
    """The tokens that pass through a model.

    Attributes:
        source_tokens, target_tokens: their numbers, end symbols counted.
        source_length, target_length: mean tokens per sentence; attention grows with them.
    """

    source_tokens: float
    target_tokens: float
    source_length: float
    target_length: float


@dataclass(frozen=True)
class Shape:
    """Widths of a layer's matrices.

    Attributes:
        model: d_model.
        keys, values: of all heads together.
        inner: d_ff.
    """

    model: int
    keys: int
    values: int
    inner: int

    @staticmethod
    def of(config: ModelConfig) -> "Shape":
        """Return the widths of a model's layers."""
        key_size, value_size = config.head_sizes
        return Shape(
            model=config.model_size,
            keys=config.heads * key_size,
            values=config.heads * value_size,
            inner=config.feed_forward_size,
        )

    @property
    def attention(self) -> int:
        """Entries of the projections of one attention."""
        return self.model * (2 * self.keys + self.values) + self.values * self.model

    @property
    def feed_forward(self) -> int:
        """Entries of the two matrices of a feed-forward layer."""
        return 2 * self.model * self.inner


def count_parameters(
    config: ModelConfig, source_size: int, target_size: int, is_shared: bool
) -> Parameters:
    """Count the parameters of a model.

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

    Products with padding do not count, nor do layers that are computed again to save memory.

    Args:
        config: the shape.
        target_size: V, entries of the target vocabulary.
        work: the tokens that pass through.
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
