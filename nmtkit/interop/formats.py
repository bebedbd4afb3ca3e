"""Shared by the export formats: unsupported settings, SentencePiece models as files."""

from collections.abc import Collection, Iterator
from pathlib import Path

from nmtkit.config.problems import Problem
from nmtkit.config.training import POSITIONS, ModelConfig
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword

NUM_POSITIONS = 2048
"""Longest sequence of an exported model: other libraries store the sinusoids as a table."""

SOURCE, TARGET = "source.spm", "target.spm"
"""SentencePiece models of both sides, named as in OPUS-MT."""


def num_positions(config: ModelConfig) -> int:
    """Return the longest sequence that an exported model can read or write."""
    is_learned = POSITIONS[config.positions].is_learned
    return config.max_positions if is_learned else NUM_POSITIONS


def unsupported_attention(config: ModelConfig) -> Iterator[Problem]:
    """Yield attention settings that other libraries lack: other head sizes, and windows."""
    own = config.model_size // config.heads
    for name, size in (("key_size", config.key_size), ("value_size", config.value_size)):
        if size * config.heads not in (0, config.model_size):
            yield unsupported_value(name, size, f"model_size / heads ({own})")
    if config.window:
        yield unsupported_value("window", config.window, "0")


def unsupported_choice(config: ModelConfig, name: str, known: Collection[str]) -> Iterator[Problem]:
    """Yield a problem if a choice setting has a value that a format does not know."""
    value = vars(config)[name]
    if value not in known:
        yield unsupported_value(name, value, " or ".join(known))


def unsupported_value(name: str, value: object, wanted: str) -> Problem:
    """Return the problem of a setting whose value a format does not support."""
    return Problem((name,), f"{name} ({value}) must be {wanted} [model.{name}]")


def write_sentencepiece(codec: TextCodec, folder: Path) -> None:
    """Write the SentencePiece models of both sides, if any; a shared one is written twice."""
    for name, vocabulary in ((SOURCE, codec.source), (TARGET, codec.target)):
        model = sentencepiece_model(vocabulary)
        if model is not None:
            (folder / name).write_bytes(model)


def sentencepiece_model(vocabulary: Vocabulary) -> bytes | None:
    """Return the SentencePiece model of a vocabulary; None if it has none."""
    if isinstance(vocabulary, MarianVocabulary):
        return vocabulary.model
    return vocabulary.data if isinstance(vocabulary, Subword) else None
