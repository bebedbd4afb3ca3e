"""Parameters and floating-point operations of a model, counted from its shape.

Operations are the multiplications and additions of matrix products; all others are few. Training
takes three times the operations of a forward pass, as the backward pass computes the gradients of
both factors of each product. Self-attention within a window counts only the products within it;
the blocks of `kernels/window.py` compute more.
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
        encoder, decoder: layers, with the final LayerNorm if there is one.
    """

    embeddings: int
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """Sum over the parts."""
        return self.embeddings + self.encoder + self.decoder


@dataclass(frozen=True)
class Workload:
    """The tokens that a model processes.

    Attributes:
        source_tokens, target_tokens: numbers of tokens, end symbols counted.
        source_length, target_length: mean tokens per sentence, for the cost of attention.
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
        keys, values: sums over the heads.
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
        """Weights in the projections of one attention, without biases."""
        return self.model * (2 * self.keys + self.values) + self.values * self.model

    @property
    def feed_forward(self) -> int:
        """Weights in the two matrices of a feed-forward network, without biases."""
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


def training_operations(config: ModelConfig, target_size: int, workload: Workload) -> float:
    """Count the floating-point operations of a forward and backward pass; see `operations`."""
    return BACKWARD_AND_FORWARD * operations(config, target_size, workload)


def operations(config: ModelConfig, target_size: int, workload: Workload) -> float:
    """Count the floating-point operations of a forward pass.

    Products with padding do not count, nor does the recomputation of activation checkpointing.

    Args:
        config: the shape.
        target_size: V, entries of the target vocabulary.
        workload: the tokens that are processed.
    """
    shape = Shape.of(config)
    width = shape.keys + shape.values
    window = config.window
    num_source_keys, num_target_keys = workload.source_length, workload.target_length
    if window:
        num_source_keys = min(num_source_keys, 2 * (window // 2) + 1)
        num_target_keys = min(num_target_keys, window)
    encoder = shape.attention + shape.feed_forward + num_source_keys * width
    projected_memory = config.model_size * width
    decoder = (
        shape.attention
        + num_target_keys * width
        + (shape.attention - projected_memory)
        + workload.source_length * width
        + shape.feed_forward
    )
    products = (
        workload.source_tokens
        * (config.encoder_layers * encoder + config.decoder_layers * projected_memory)
        + workload.target_tokens * config.decoder_layers * decoder
        + workload.target_tokens * config.model_size * target_size
    )
    return 2.0 * products
