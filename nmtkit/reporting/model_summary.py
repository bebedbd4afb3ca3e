"""The summary of a model: shape, parameters, operations, disk space, memory use.

All figures are computed from a recipe and the size of the shared vocabulary.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nmtkit.config.model import ModelConfig
from nmtkit.config.schema import TrainRecipe
from nmtkit.model.cost import (
    BACKWARD_AND_FORWARD,
    BFLOAT16_BYTES,
    FLOAT32_BYTES,
    NUM_MOMENTS,
    Parameters,
    TrainingMemory,
    Workload,
    chunk_size,
    count_parameters,
    operations,
    training_memory,
)
from nmtkit.reporting.paper import PaperParameters
from nmtkit.storage.json_data import encode
from nmtkit.units import prefixed

SENTENCE_TOKENS = 25
"""Assumed tokens per sentence on either side; the operations of attention depend on it."""

DEVICE_GB = (24, 80)
"""Memory sizes of two common devices, for which the largest updates are computed."""

GB = 10**9

BYTES_TO_TRAIN = (2 + NUM_MOMENTS) * FLOAT32_BYTES
"""Bytes per parameter: weight, gradient and Adam's two moments, in float32."""


@dataclass(frozen=True)
class ModelSummary:
    """The summary of a model.

    Attributes:
        recipe: its settings.
        vocab_size: size of the vocabulary.
        parameters: numbers of parameters by part.
        source_operations, target_operations: of a forward pass, per token of that side.
        memory: estimated, by the precision of matrix products: "kept" in general, and "recomputed"
            with --activation-checkpointing.
    """

    recipe: TrainRecipe
    vocab_size: int
    parameters: Parameters
    source_operations: float
    target_operations: float
    memory: Mapping[str, Mapping[str, TrainingMemory]]

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes on disk of the weights."""
        return self.parameters.total * FLOAT32_BYTES

    @property
    def state_bytes(self) -> int:
        """Bytes on disk of the training state of a checkpoint."""
        return self.checkpoint_bytes * (NUM_MOMENTS + self.recipe.training.is_averaged)

    def to_json(self) -> dict[str, Any]:
        """Return all figures unrounded, for `encode`."""
        sides = {"source_token": self.source_operations, "target_token": self.target_operations}
        return {
            "model": self.recipe.model,
            "vocab_size": self.vocab_size,
            "parameters": {**vars(self.parameters), "total": self.parameters.total},
            "sentence_tokens": SENTENCE_TOKENS,
            "operations": {
                side: {"forward": number, "training": BACKWARD_AND_FORWARD * number}
                for side, number in sides.items()
            },
            "checkpoint_bytes": self.checkpoint_bytes,
            "state_bytes": self.state_bytes,
            "bytes_to_train": BYTES_TO_TRAIN * self.parameters.total,
            "bytes_per_token": {
                precision: {name: one.per_token for name, one in memory.items()}
                for precision, memory in self.memory.items()
            },
            "largest_update_tokens": {
                precision: {name: _largest(one) for name, one in memory.items()}
                for precision, memory in self.memory.items()
            },
        }

    def lines(self) -> Iterator[str]:
        """Yield the summary, a line per figure."""
        recipe, part = self.recipe, self.parameters
        model, training = recipe.model, recipe.training
        yield aligned("shape", shape_text(model))
        yield aligned(
            "training",
            f"{training.max_updates:,} updates of {training.update_tokens:,} tokens per side, "
            f"dropout {model.dropout}, label smoothing {training.label_smoothing}",
        )
        yield aligned("parameters", f"{part.total:,}, with {self.vocab_size:,} entries")
        yield aligned("  embeddings", f"{part.embeddings:,}, output projection included")
        yield aligned("  encoder", f"{part.encoder:,}")
        yield aligned("  decoder", f"{part.decoder:,}")
        yield from self._operation_lines()
        yield aligned(
            "disk",
            f"{prefixed(self.checkpoint_bytes)}B per checkpoint, {prefixed(self.state_bytes)}B "
            "more for the training state of each of the newest",
        )
        yield aligned(
            "memory",
            f"{prefixed(BYTES_TO_TRAIN * part.total)}B for weights, gradients and Adam's moments",
        )
        for precision, memory in self.memory.items():
            yield aligned(f"  {precision}", _described(memory["kept"]))
            recomputed = _described(memory["recomputed"])
            yield aligned("  recomputed", f"{recomputed}, with --activation-checkpointing")

    def _operation_lines(self) -> Iterator[str]:
        yield aligned("operations", f"matrix products, with {SENTENCE_TOKENS} tokens per sentence")
        for name, factor in (("forward", 1), ("training", BACKWARD_AND_FORWARD)):
            yield aligned(
                f"  {name}",
                f"{prefixed(factor * self.source_operations)}FLOP per source token, "
                f"{prefixed(factor * self.target_operations)}FLOP per target token",
            )


def summary_lines(
    recipe: TrainRecipe, vocab_size: int, with_paper: bool, as_json: bool
) -> Iterator[str]:
    """Yield the lines of a model's summary, or one line of JSON.

    Args:
        recipe: the model's settings.
        vocab_size: size of the vocabulary that both sides share.
        with_paper: add the number of parameters in the paper's table 3.
        as_json: yield JSON.
    """
    found = summarize_model(recipe, vocab_size)
    num_parameters = found.parameters.total
    paper = PaperParameters.of(recipe.model, num_parameters, vocab_size) if with_paper else None
    if as_json:
        yield json.dumps(encode(found.to_json() | (paper.to_json() if paper else {})))
        return
    yield from found.lines()
    if paper:
        yield aligned("the paper", str(paper))


def shape_text(model: ModelConfig) -> str:
    """Return the shape of a model, such as "6+6 layers, d_model 512, d_ff 2048, 8 heads, ..."."""
    key_size, value_size = model.head_sizes
    return (
        f"{model.encoder_layers}+{model.decoder_layers} layers, d_model {model.model_size}, "
        f"d_ff {model.feed_forward_size}, {model.heads} heads, d_k {key_size}, d_v {value_size}, "
        f"{model.norm}-norm, {model.positions} positions, {model.activation}"
        + (", QK-norm" if model.qk_norm else "")
        + (f", window {model.window}" if model.window else "")
    )


def summarize_model(recipe: TrainRecipe, vocab_size: int) -> ModelSummary:
    """Count the parameters, operations and bytes of a model.

    Args:
        recipe: the model's settings.
        vocab_size: size of the vocabulary that both sides share.
    """
    model = recipe.model
    length = SENTENCE_TOKENS
    parameters = count_parameters(model, vocab_size, vocab_size, is_shared=True)
    return ModelSummary(
        recipe=recipe,
        vocab_size=vocab_size,
        parameters=parameters,
        source_operations=operations(model, vocab_size, Workload(1, 0, length, length)),
        target_operations=operations(model, vocab_size, Workload(0, 1, length, length)),
        memory={
            precision: {
                name: training_memory(
                    model,
                    parameters,
                    vocab_size,
                    size,
                    is_recomputed,
                    chunk_size(vocab_size, "cuda"),
                )
                for name, is_recomputed in (("kept", False), ("recomputed", True))
            }
            for precision, size in (("float32", FLOAT32_BYTES), ("bfloat16", BFLOAT16_BYTES))
        },
    )


def aligned(name: str, value: str) -> str:
    """Return a line of a summary: a name and its value, which begins at a fixed column."""
    return f"{name:<14} {value}"


def _largest(memory: TrainingMemory) -> dict[int, int]:
    """Return the tokens per side of the largest update in one micro-batch, by device memory."""
    return {size: memory.largest_update(size * GB) for size in DEVICE_GB}


def _described(memory: TrainingMemory) -> str:
    """Describe the bytes per token and the largest updates."""
    largest = ", ".join(f"{_rounded(n)} in {size} GB" for size, n in _largest(memory).items())
    return f"{prefixed(memory.per_token)}B per token of both sides; updates of at most {largest}"


def _rounded(tokens: int) -> str:
    """Round tokens down to two digits: the estimate is right to 25 percent."""
    digits = max(len(str(tokens)) - 2, 0)
    return f"{tokens // 10**digits * 10**digits:,}"
