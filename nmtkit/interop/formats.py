"""What other libraries' formats have in common: their limits, SentencePiece models as files."""

from collections.abc import Collection, Iterator
from pathlib import Path

from nmtkit.config.problems import Problem
from nmtkit.config.training import POSITIONS, ModelConfig
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword

NUM_POSITIONS = 2048
"""Longest sequence of an exported model: other libraries hold the sinusoids as a table."""

SOURCE, TARGET = "source.spm", "target.spm"
"""The files of both sides, named as OPUS-MT names them."""


def num_positions(config: ModelConfig) -> int:
    """Return the longest sequence that a model can read or write once it is exported."""
    is_learned = POSITIONS[config.positions].is_learned
    return config.max_positions if is_learned else NUM_POSITIONS


def attention_limits(config: ModelConfig) -> Iterator[Problem]:
    """Yield what others do not have: heads of other sizes than the model's, and windows."""
    own = config.model_size // config.heads
    for name, size in (("key_size", config.key_size), ("value_size", config.value_size)):
        if size * config.heads not in (0, config.model_size):
            yield refusal(name, size, f"model_size / heads ({own})")
    if config.window:
        yield refusal("window", config.window, "0")


def choice_limits(config: ModelConfig, name: str, known: Collection[str]) -> Iterator[Problem]:
    """Yield the problem of a choice that a format has no word for."""
    value = vars(config)[name]
    if value not in known:
        yield refusal(name, value, " or ".join(known))


def refusal(name: str, value: object, wanted: str) -> Problem:
    """Return the problem that a setting of the model is not the only one that a format knows."""
    return Problem((name,), f"{name} ({value}) must be {wanted} [model.{name}]")


def write_sentencepiece(codec: TextCodec, folder: Path) -> None:
    """Write the models of both sides, as far as they have one; equal ones are written twice."""
    for name, vocabulary in ((SOURCE, codec.source), (TARGET, codec.target)):
        model = sentencepiece_model(vocabulary)
        if model is not None:
            (folder / name).write_bytes(model)


def sentencepiece_model(vocabulary: Vocabulary) -> bytes | None:
    """Return the model that a vocabulary cuts text with; None if it has none."""
    if isinstance(vocabulary, MarianVocabulary):
        return vocabulary.model
    return vocabulary.data if isinstance(vocabulary, Subword) else None
