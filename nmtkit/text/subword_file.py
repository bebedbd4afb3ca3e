"""SentencePiece's model file, read and extended without the Protocol Buffers library.

Source: sentencepiece_model.proto of SentencePiece;
https://protobuf.dev/programming-guides/encoding
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_PIECE, _TRAINER, _DENORMALIZER = 1, 2, 5
_PIECE_TEXT, _PIECE_SCORE, _PIECE_TYPE = 1, 2, 3
_TRAINER_MODEL_TYPE = 3
"""Field numbers; of the file, of a piece and of the trainer's settings."""

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
"""Types of pieces. No text has a control piece; a user-defined one is never split or joined."""

_ALGORITHMS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
"""Algorithms by model type; the first is the default of the format."""

_NUMBER, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
"""Wire types of fields."""


@dataclass(frozen=True)
class SubwordFile:
    """Contents of a SentencePiece model file.

    Attributes:
        algorithm: "unigram", "bpe", "word" or "char".
        texts: the piece of each id; None unless its type is normal.
        scores: the score of each id.
        whole: the user-defined pieces by their ids.
    """

    algorithm: str
    texts: list[str | None]
    scores: list[float]
    whole: dict[int, str]

    @staticmethod
    def of(model: bytes) -> "SubwordFile":
        """Read a model's bytes, which SentencePiece has loaded."""
        model_type, *_ = _ALGORITHMS
        texts: list[str | None] = []
        scores: list[float] = []
        whole: dict[int, str] = {}
        for number, value in _fields(memoryview(model)):
            if number == _TRAINER:
                model_type = dict(_fields(value)).get(_TRAINER_MODEL_TYPE, model_type)
            elif number == _PIECE:
                piece = dict(_fields(value))
                text, kind = piece[_PIECE_TEXT], piece.get(_PIECE_TYPE, _NORMAL)
                if kind == _USER_DEFINED:
                    whole[len(texts)] = str(text, "utf-8", "replace")
                texts.append(str(text, "utf-8") if kind == _NORMAL else None)
                scores.append(*struct.unpack("<f", piece.get(_PIECE_SCORE, bytes(4))))
        return SubwordFile(_ALGORITHMS[model_type], texts, scores, whole)


def with_pieces(model: bytes, pieces: Iterable[str]) -> bytes:
    """Return a model with further user-defined pieces, whose ids follow those of the others."""
    return model + b"".join(_piece(one, _USER_DEFINED) for one in pieces)


def with_controls(model: bytes, pieces: Iterable[str]) -> bytes:
    """Return a model with further control pieces, whose ids follow those of the others."""
    return model + b"".join(_piece(one, _CONTROL) for one in pieces)


def with_denormalizer(model: bytes, rules: bytes) -> bytes:
    """Return a model with rules of decoding, a serialized `NormalizerSpec`."""
    return model + _field(_DENORMALIZER, rules)


def _piece(text: str, kind: int) -> bytes:
    score = _varint(_PIECE_SCORE << 3 | _FLOAT) + struct.pack("<f", 0)
    piece_type = _varint(_PIECE_TYPE << 3 | _NUMBER) + _varint(kind)
    return _field(_PIECE, _field(_PIECE_TEXT, text.encode()) + score + piece_type)


def _field(number: int, value: bytes) -> bytes:
    """Return a field; appended to a Protocol Buffers message, it is part of it."""
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Return a number in groups of 7 bits, the lowest first."""
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the number and value of each field of a Protocol Buffers message."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = number()
        kind = key & 7
        if kind == _NUMBER:
            yield key >> 3, number()
            continue
        size = number() if kind == _BYTES else {_DOUBLE: 8, _FLOAT: 4}[kind]
        yield key >> 3, message[place : place + size]
        place += size
