"""Sentences as models attend to them, made by hand or by a tiny model."""

import torch
from torch import Tensor

from nmtkit.config.schema import AttentionRecipe, TrainRecipe, Value
from nmtkit.config.toml import build
from nmtkit.reporting.attention.sentences import AttentionExtractor, AttentionMap, Sentence, Tokens
from nmtkit.storage.model_folder import LoadedModel
from tests.tiny import never_warn, tiny_codec, tiny_model

HOSTILE = "</script><b>\"&'</b>\u202e\u0634\u0643\u0631\u0627 \U0001f600"
"""Text that looks like markup, with quotes, Arabic, an emoji, and a mark that turns the text."""

SOURCE = Tokens(("\u2581the", "\u2581ho", "use", "</s>"), (0, 1, 1, 2), ("the", HOSTILE, "</s>"))
TARGET = Tokens(("\u2581das", "\u2581Haus", "</s>"), (0, 1, 2), ("das", "Haus", "</s>"))
READ = Tokens(("<s>", "\u2581das", "\u2581Haus"), (0, 1, 2), ("<s>", "das", "Haus"))


def random_weights(num_rows: int, num_columns: int, layers: int = 3, heads: int = 2) -> Tensor:
    """Return sharp weights, as those of trained models are."""
    return (4 * torch.randn(layers, heads, num_rows, num_columns)).softmax(-1)


def example_sentence() -> Sentence:
    """Return a sentence of three layers and two heads, with its translation."""
    torch.manual_seed(1)
    return Sentence(
        HOSTILE,
        "das Haus",
        (
            AttentionMap("encoder", SOURCE, SOURCE, random_weights(4, 4)),
            AttentionMap("decoder", READ, READ, random_weights(3, 3)),
            AttentionMap("memory", TARGET, SOURCE, random_weights(3, 4)),
        ),
    )


def tiny_loaded() -> LoadedModel:
    """Return a model of two layers and two heads, as it is loaded."""
    codec = tiny_codec()
    return LoadedModel(tiny_model(codec), codec, TrainRecipe(), {})


def extractor(**values: Value) -> AttentionExtractor:
    """Return an extractor of `tiny_loaded` with some settings."""
    return AttentionExtractor(tiny_loaded(), build(AttentionRecipe, values), never_warn)
