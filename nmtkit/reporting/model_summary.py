"""A model in numbers: shape, parameters, operations, disk, memory.

All of it follows from a recipe and the size of the vocabulary, which both sides share.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from nmtkit.config.fields import fields_of
from nmtkit.config.schema import PreprocessRecipe, TrainRecipe
from nmtkit.config.training import ModelConfig
from nmtkit.errors import ConfigError
from nmtkit.model.estimate.cost import (
    BACKWARD_AND_FORWARD,
    Parameters,
    Work,
    count_parameters,
    operations,
)
from nmtkit.model.estimate.memory import (
    BFLOAT16_BYTES,
    FLOAT32_BYTES,
    NUM_MOMENTS,
    Activations,
    TrainingMemory,
    activations,
)
from nmtkit.model.kernels.rows import chunk_size
from nmtkit.reporting.paper import PaperParameters
from nmtkit.units import prefixed

SENTENCE_TOKENS = 25
"""Tokens of a sentence on either side, on which the operations of attention depend."""

DEVICE_GB = (24, 80)
"""Memory of two usual devices, for which the largest updates are counted."""

GB = 10**9

BYTES_TO_TRAIN = (2 + NUM_MOMENTS) * FLOAT32_BYTES
"""Of a parameter: the weight, its gradient, and two moments of Adam's, in float32."""

LARGEST_VOCABULARY = 2**32
"""Ids are stored as uint32 at most."""


@dataclass(frozen=True)
class Memory:
    """Bytes that training keeps for the backward pass, in a precision of matrix products.

    Attributes:
        kept: a token.
        recomputed: the same with --recompute, which also needs those of one layer at a time.
        largest: tokens a side of the largest update that is computed at once, by the device's GB.
        largest_recomputed: the same with --recompute.
    """

    kept: Activations
    recomputed: Activations
    largest: dict[int, int]
    largest_recomputed: dict[int, int]


@dataclass(frozen=True)
class ModelSummary:
    """A model in numbers.

    Attributes:
        recipe: its settings.
        vocab_size: entries of the vocabulary.
        parameters: how many, by part.
        source_operations, target_operations: of a forward pass, a token of either side.
        memory: what is kept for the backward pass, by the precision of matrix products.
    """

    recipe: TrainRecipe
    vocab_size: int
    parameters: Parameters
    source_operations: float
    target_operations: float
    memory: dict[str, Memory]

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of the weights on disk."""
        return self.parameters.total * FLOAT32_BYTES

    @property
    def state_bytes(self) -> int:
        """Bytes of what training needs with a checkpoint to continue from it."""
        has_average = bool(self.recipe.training.average_decay)
        return self.checkpoint_bytes * (NUM_MOMENTS + has_average)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with numbers of operations and bytes as they are."""
        sides = {"source_token": self.source_operations, "target_token": self.target_operations}
        return {
            "model": asdict(self.recipe.model),
            "vocab_size": self.vocab_size,
            "parameters": {**asdict(self.parameters), "total": self.parameters.total},
            "sentence_tokens": SENTENCE_TOKENS,
            "operations": {
                side: {"forward": number, "training": BACKWARD_AND_FORWARD * number}
                for side, number in sides.items()
            },
            "checkpoint_bytes": self.checkpoint_bytes,
            "state_bytes": self.state_bytes,
            "bytes_to_train": BYTES_TO_TRAIN * self.parameters.total,
            "activation_bytes": {
                name: {"kept": asdict(one.kept), "recomputed": asdict(one.recomputed)}
                for name, one in self.memory.items()
            },
            "largest_update_tokens": {
                name: {"kept": one.largest, "recomputed": one.largest_recomputed}
                for name, one in self.memory.items()
            },
        }

    def lines(self) -> Iterator[str]:
        """Yield a line per fact."""
        recipe, part = self.recipe, self.parameters
        model, training = recipe.model, recipe.training
        key_size, value_size = model.head_sizes
        yield _line(
            "shape",
            f"{model.encoder_layers}+{model.decoder_layers} layers, d_model {model.model_size}, "
            f"d_ff {model.feed_forward_size}, {model.heads} heads, "
            f"d_k {key_size}, d_v {value_size}, "
            f"{model.norm}-norm, {model.positions} positions"
            + (f", window {model.window}" if model.window else ""),
        )
        yield _line(
            "training",
            f"{training.max_updates:,} updates of {training.update_tokens:,} tokens a side, "
            f"dropout {model.dropout}, label smoothing {training.label_smoothing}",
        )
        yield _line("parameters", f"{part.total:,}, with {self.vocab_size:,} entries")
        yield _line("  embeddings", f"{part.embeddings:,}, with the output projection")
        yield _line("  encoder", f"{part.encoder:,}")
        yield _line("  decoder", f"{part.decoder:,}")
        yield from self._operation_lines()
        yield _line(
            "disk",
            f"{prefixed(self.checkpoint_bytes)}B a checkpoint, {prefixed(self.state_bytes)}B more "
            "for each of the newest, from which training can continue",
        )
        yield _line(
            "memory",
            f"{prefixed(BYTES_TO_TRAIN * part.total)}B for weights, gradients and Adam's moments",
        )
        if model.window:
            yield _line("  --window", "the masks of its blocks come on top of what is told below")
        for precision, memory in self.memory.items():
            yield _line(f"  {precision}", f"{_sides(memory.kept)} kept for the backward pass")
            yield _line("  --recompute", f"{_sides(memory.recomputed)}, and one layer's of those")
            yield _line("  an update", f"of at most {_tokens(memory)}")

    def _operation_lines(self) -> Iterator[str]:
        yield _line("operations", f"of matrix products, at {SENTENCE_TOKENS} tokens a sentence")
        for name, factor in (("forward", 1), ("training", BACKWARD_AND_FORWARD)):
            yield _line(
                f"  {name}",
                f"{prefixed(factor * self.source_operations)}FLOP a source token, "
                f"{prefixed(factor * self.target_operations)}FLOP a target token",
            )


def describe_model(
    recipe: TrainRecipe, vocab_size: int, with_paper: bool, as_json: bool
) -> Iterator[str]:
    """Yield a model in numbers, a line a fact, or one JSON object.

    Args:
        recipe: its settings.
        vocab_size: entries of the vocabulary that both sides share.
        with_paper: compare its parameters with the paper's.
        as_json: yield JSON.

    Raises:
        ConfigError: no vocabulary has that size.
    """
    found = summarize_model(recipe, vocab_size)
    paper = PaperParameters.of(recipe.model, found.parameters.total, vocab_size)
    if as_json:
        yield json.dumps(found.to_json() | (paper.to_json() if with_paper else {}))
        return
    yield from found.lines()
    if with_paper:
        yield _line("the paper", str(paper))


def summarize_model(recipe: TrainRecipe, vocab_size: int) -> ModelSummary:
    """Count the parameters, operations and bytes of a model.

    Args:
        recipe: its settings.
        vocab_size: entries of the vocabulary that both sides share.

    Raises:
        ConfigError: no vocabulary has that size.
    """
    smallest = fields_of(PreprocessRecipe)["vocab_size"].setting.minimum
    assert smallest is not None, "vocab_size has a minimum"
    if not smallest <= vocab_size <= LARGEST_VOCABULARY:
        raise ConfigError(
            f"--vocab-size ({vocab_size}) must be a whole number from {smallest} to "
            f"{LARGEST_VOCABULARY:,}; the paper has 37000 for English-German"
        )
    model = recipe.model
    length = SENTENCE_TOKENS
    parameters = count_parameters(model, vocab_size, vocab_size, is_shared=True)
    return ModelSummary(
        recipe=recipe,
        vocab_size=vocab_size,
        parameters=parameters,
        source_operations=operations(model, vocab_size, Work(1, 0, length, length)),
        target_operations=operations(model, vocab_size, Work(0, 1, length, length)),
        memory={
            name: _memory(model, parameters, vocab_size, size)
            for name, size in (("float32", FLOAT32_BYTES), ("bfloat16", BFLOAT16_BYTES))
        },
    )


def _memory(
    model: ModelConfig, parameters: Parameters, vocab_size: int, product_bytes: int
) -> Memory:
    """Count the memory of training in a precision."""

    def largest(recompute: bool) -> dict[int, int]:
        chunk = chunk_size(vocab_size, "cuda")
        memory = TrainingMemory(model, parameters, vocab_size, product_bytes, recompute, chunk)
        return {size: memory.largest_batch(size * GB) for size in DEVICE_GB}

    return Memory(
        kept=activations(model, product_bytes, recompute=False),
        recomputed=activations(model, product_bytes, recompute=True),
        largest=largest(recompute=False),
        largest_recomputed=largest(recompute=True),
    )


def _sides(bytes_kept: Activations) -> str:
    return (
        f"{prefixed(bytes_kept.source)}B a source token, "
        f"{prefixed(bytes_kept.target)}B a target token"
    )


def _tokens(memory: Memory) -> str:
    """Write the largest updates."""
    return "; ".join(
        f"{_rounded(memory.largest[size])} tokens a side in {size} GB, "
        f"{_rounded(memory.largest_recomputed[size])} with --recompute"
        for size in DEVICE_GB
    )


def _rounded(tokens: int) -> str:
    """Write a number of tokens, down to two digits: it is counted to within 15 percent."""
    digits = max(len(str(tokens)) - 2, 0)
    return f"{tokens // 10**digits * 10**digits:,}"


def _line(name: str, value: str) -> str:
    return f"{name:<14} {value}"
