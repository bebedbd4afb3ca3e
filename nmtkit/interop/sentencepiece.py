"""The SentencePiece models of a codec as files of their own, named as OPUS-MT names them."""

from pathlib import Path

from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import Subword

SOURCE, TARGET = "source.spm", "target.spm"


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
