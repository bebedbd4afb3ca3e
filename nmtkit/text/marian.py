"""Vocabularies of OPUS-MT: a SentencePiece model, and a separate list with the ids of its pieces.

Source and target have different SentencePiece models but the same list of ids. Pieces outside the
list are unknown. Multilingual models expect a line to begin with the symbol of its target language,
such as `>>fra<<`, which is an entry of the list but not a piece of the model.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from nmtkit.errors import RESTORE, DamagedError, DataError
from nmtkit.storage.json_data import JsonError, decode_text
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.marks import Marks
from nmtkit.text.subword import SPACE_SYMBOL, SentencePieceVocabulary

_BYTE = "<0x{:02X}>"
_LANGUAGE_BEGIN, _LANGUAGE_END = ">>", "<<"
_SYMBOL = re.compile(r">>[^\s<>]+<<")
_NUM_SHOWN = 10
"""Number of languages in a message."""
UNKNOWN_LANGUAGES = ("source", "target")
"""Languages of an imported model whose folder does not name them."""


class MarianVocabulary(SentencePieceVocabulary):
    """A SentencePiece model whose ids come from a list; special symbols have nmtkit's ids."""

    kind = segmentation = "marian"
    is_per_side = True

    def __init__(self, model: bytes, pieces: Sequence[str], name: str) -> None:
        """Load a model and the list of its pieces.

        Args:
            model: the bytes of a SentencePiece model; its own ids are not used.
            pieces: distinct entries in the order of their ids. The first three are the unknown
                symbol, the begin symbol (Marian's padding symbol, with whose embedding its decoder
                begins) and the end symbol.
            name: name of the model in messages.

        Raises:
            DamagedError: the bytes are not a SentencePiece model.
        """
        super().__init__(model, name)
        self._pieces = tuple(pieces)
        self._ids = {piece: index for index, piece in enumerate(pieces)}
        assert len(self._ids) == len(pieces) > EOS_ID, "a piece appears twice, or one is missing"
        self.size = len(pieces)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the files that `save` wrote.

        Raises:
            DamagedError: a file is missing or damaged.
        """
        list_path = _list_path(path)
        if not list_path.is_file():
            raise DamagedError(f"{list_path}: missing; {RESTORE}")
        try:
            model, pieces = path.read_bytes(), decode_text(list[str], list_path.read_bytes())
        except OSError as error:
            raise DamagedError(f"{error.filename}: {error.strerror}; {RESTORE}") from error
        except JsonError as error:
            raise DamagedError(f"{list_path}: {error}; {RESTORE}") from None
        if not len({*pieces}) == len(pieces) > EOS_ID:
            raise DamagedError(f"{list_path}: not a list of distinct pieces; {RESTORE}")
        return cls(model, pieces, str(path))

    @cached_property
    def marks(self) -> Marks | None:
        """The marks of the vocabulary, entries of the list only; None = it has none."""
        return Marks.of(self._ids.get)

    @property
    def content(self) -> bytes:
        """The bytes of both files that `save` writes."""
        return self.model + self._list

    def save(self, path: Path) -> None:
        """Write the model, and the list of pieces with the suffix .json."""
        path.write_bytes(self.model)
        _list_path(path).write_bytes(self._list)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """Ids that stand for text outside the vocabulary: <unk> and the bytes of byte fallback."""
        byte_ids = (self._ids.get(_BYTE.format(byte)) for byte in range(256))
        return frozenset({UNK_ID, *(index for index in byte_ids if index is not None)})

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Split the language symbol from the beginning of a line; "" if it has none."""
        name, end, text = line.partition(_LANGUAGE_END)
        symbol = name + end
        is_symbol = name.startswith(_LANGUAGE_BEGIN) and symbol in self._ids
        return (symbol, text) if is_symbol else ("", line)

    @cached_property
    def languages(self) -> list[str]:
        """The languages that the list has symbols of, such as fra."""
        return [piece[2:-2] for piece in self._pieces if _is_language(piece)]

    @staticmethod
    def symbol_of(lang: str) -> str:
        """Return the symbol of a language, such as `>>fra<<`."""
        return f"{_LANGUAGE_BEGIN}{lang}{_LANGUAGE_END}"

    def check_language(self, line: str) -> None:
        """Raise DataError for a source line whose language symbol the model does not have.

        A model without any such symbol reads it as text.
        """
        languages = [piece for piece in self._pieces if _is_language(piece)]
        found = _SYMBOL.match(line)
        if languages and found and found[0] not in self._ids:
            more = " and others" * (len(languages) > _NUM_SHOWN)
            raise DataError(
                f"{found[0]} is not a language of this model; use one of "
                f"{', '.join(languages[:_NUM_SHOWN])}{more}"
            )

    def piece(self, index: int) -> str:
        """Return the entry of an id."""
        return self._pieces[index]

    @property
    def _list(self) -> bytes:
        return (json.dumps(self._pieces, ensure_ascii=False, indent=0) + "\n").encode()

    def _encode(self, line: str) -> list[int]:
        return [*map(self._id_of_text, self._segment(line))]

    def _segment(self, line: str) -> list[str]:
        symbol, text = self.split_symbol(line)
        pieces: list[str] = self._processor.encode(text, out_type=str)
        return [symbol, *pieces] if symbol else pieces

    def _id_of_text(self, piece: str) -> int:
        """Return the id of a piece; one spelled like the begin or end symbol is unknown."""
        index = self._ids.get(piece, UNK_ID)
        return UNK_ID if index in (BOS_ID, EOS_ID) else index

    def _decode(self, ids: Sequence[int]) -> str:
        pieces = [self._decodable[index] for index in ids if index not in self._silent]
        text: str = self._processor.decode_pieces(pieces)
        return text.strip(" ")

    @cached_property
    def _decodable(self) -> list[str]:
        """The pieces as the model decodes them, which copies those that it does not know."""
        known = self._processor.piece_to_id(list(self._pieces))
        return [
            piece.replace(SPACE_SYMBOL, " ") if index == self._processor.unk_id() else piece
            for piece, index in zip(self._pieces, known, strict=True)
        ]

    def _normalize(self, line: str) -> str:
        _, text = self.split_symbol(line)
        return super()._normalize(text)

    def _with_tokens(self, tokens: Sequence[str]) -> Self:
        """Return the vocabulary with tokens; language symbols are entries of the list only."""
        languages = [token for token in tokens if _is_language(token)]
        pieces, model = self._with_pieces([one for one in tokens if not _is_language(one)])
        listed = dict.fromkeys([*self._pieces, *languages, *pieces])
        extended = type(self)(model, [*listed], "the extended vocabulary")
        extended._check_whole(tokens)
        return extended

    def _with_marks(self, names: Sequence[str]) -> Self:
        listed = dict.fromkeys([*self._pieces, *names])
        return type(self)(self.model, [*listed], "the vocabulary with marks")


def _is_language(token: str) -> bool:
    """Return whether a token is a language symbol: its only end is at its end."""
    return token.startswith(_LANGUAGE_BEGIN) and token.find(_LANGUAGE_END) == len(token) - 2


def _list_path(path: Path) -> Path:
    """Return the path of the list of pieces of a model."""
    return path.with_suffix(".json")
