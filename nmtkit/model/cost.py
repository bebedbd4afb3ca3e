"""Parameters, operations and memory of a model, counted from its shape. Without torch.

Operations are the multiplications and additions of matrix products; all others are few. Training
takes three times the operations of a forward pass, as the backward pass computes the gradients of
both factors of each product. Self-attention within a window counts only the products within it;
the blocks of `kernels/unpadded.py` compute more.

Memory is estimated by one formula, which is right to 25 %: for presets, in both precisions, with
and without activation checkpointing, with few and many tokens.
"""

from dataclasses import dataclass

from nmtkit.config.model import ACTIVATIONS, NORMS, POSITIONS, ModelConfig

BACKWARD_AND_FORWARD = 3
FLOAT32_BYTES, BFLOAT16_BYTES = 4, 2

NUM_MOMENTS = 2
"""Number of moments of Adam, each as large as the weights."""


CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 27}
"""Largest number of logits per chunk, by device type: small in memory, large enough for speed.

On a GPU that is about 3600 tokens with 37 000 entries: enough that kernels run longer than their
launch takes.
"""

MIN_CHUNK_TOKENS = 256
"""Smallest number of tokens per chunk, however large the vocabulary."""

_CHUNK_STEP = 64
"""Chunks are multiples of it, so few rows of zeros are added to them; see kernels/training.py."""


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
class TrainingMemory:
    """Bytes of the peak of an update in one micro-batch.

    Attributes:
        fixed: weights, gradients and moments; the projection's second gradient; a chunk of logits.
        per_token: tensors that the backward pass needs, per source token with a target token.
    """

    fixed: int
    per_token: int

    def largest_update(self, memory: float) -> int:
        """Return the largest number of tokens per side for `memory` bytes, or 0."""
        return max(int(memory - self.fixed) // self.per_token, 0)


def count_parameters(
    config: ModelConfig, source_size: int, target_size: int, is_shared: bool
) -> Parameters:
    """Count the parameters of a model.

    Args:
        config: the shape.
        source_size, target_size: entries of the two vocabularies.
        is_shared: both sides use one vocabulary.
    """
    size, inner = config.model_size, sum(config.inner_sizes)
    keys, values = _widths(config)
    norm = 2 * size
    attention = 2 * size * (keys + values) + 2 * keys + values + size
    if config.qk_norm:
        attention += 2 * config.head_sizes[0]
    feed_forward = size * (inner + config.feed_forward_size) + inner + size
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
        embeddings=sum(matrices) * size + output_bias,
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
    size, width, window = config.model_size, sum(_widths(config)), config.window
    num_source_keys, num_target_keys = workload.source_length, workload.target_length
    if window:
        num_source_keys = min(num_source_keys, 2 * (window // 2) + 1)
        num_target_keys = min(num_target_keys, window)
    feed_forward = size * (sum(config.inner_sizes) + config.feed_forward_size)
    projected_memory = size * width
    encoder = 2 * size * width + feed_forward + num_source_keys * width
    of_keys = (num_target_keys + workload.source_length) * width
    decoder = 3 * size * width + feed_forward + of_keys
    products = workload.source_tokens * (
        config.encoder_layers * encoder + config.decoder_layers * projected_memory
    ) + workload.target_tokens * (config.decoder_layers * decoder + size * target_size)
    return 2.0 * products


def training_memory(
    config: ModelConfig,
    parameters: Parameters,
    target_size: int,
    product_bytes: int,
    activation_checkpointing: bool,
    chunk_tokens: int,
) -> TrainingMemory:
    """Estimate the memory of training.

    A layer keeps the factors of its products, and per residual connection a vector in float32 and
    a dropout mask. With activation checkpointing it keeps its input, and one layer keeps all.

    Args:
        config: the shape.
        parameters: numbers of parameters.
        target_size: V, entries of the target vocabulary.
        product_bytes: bytes per number in matrix products: 4, or 2 in bfloat16.
        activation_checkpointing: as with --activation-checkpointing.
        chunk_tokens: tokens whose logits exist at the same time; see `chunk_size`.
    """
    size, (keys, values) = config.model_size, _widths(config)
    inner = config.feed_forward_size * ACTIVATIONS[config.activation].num_kept
    residual = (FLOAT32_BYTES + 1) * size
    encoder = product_bytes * (2 * keys + 3 * values + inner + 2 * size) + 2 * residual
    decoder = product_bytes * (4 * keys + 6 * values + inner + 3 * size) + 3 * residual
    if config.qk_norm:  # the projections before it
        encoder += product_bytes * (2 * keys + values)
        decoder += product_bytes * (4 * keys + 2 * values)
    per_token = config.encoder_layers * encoder + config.decoder_layers * decoder
    if activation_checkpointing:
        num_inputs = config.encoder_layers + config.decoder_layers + 2  # of a layer, of the loss
        per_token = num_inputs * FLOAT32_BYTES * size + max(encoder, decoder)
    float32_copy = FLOAT32_BYTES if product_bytes < FLOAT32_BYTES else 0
    logits = chunk_tokens * target_size * (product_bytes + float32_copy)
    numbers = (2 + NUM_MOMENTS) * parameters.total + target_size * size
    return TrainingMemory(FLOAT32_BYTES * numbers + logits, per_token)


def chunk_size(vocabulary_size: int, device: str) -> int:
    """Return the number of tokens whose logits exist together, on a device type ("cpu" or "cuda").

    Training's loss and forced scores go through a batch chunk by chunk of tokens, so the logits
    (tokens, vocabulary) never exist whole.
    """
    tokens = CHUNK_LOGITS[device] // vocabulary_size
    return max(MIN_CHUNK_TOKENS, tokens // _CHUNK_STEP * _CHUNK_STEP)


def _widths(config: ModelConfig) -> tuple[int, int]:
    """Return the widths of the keys and of the values of all heads."""
    key_size, value_size = config.head_sizes
    return config.heads * key_size, config.heads * value_size
