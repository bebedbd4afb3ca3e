"""Vocabularies as OPUS-MT publishes them: a SentencePiece model, and the ids of its pieces apart.

The source's model and the target's cut text differently, while both number pieces by one list. A
piece that the list lacks is unknown. Multilingual models expect a line to begin with the symbol of
its target language, such as `>>fra<<`, which is an entry of the list and no piece of the model.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from nmtkit.errors import DamagedError
from nmtkit.storage.manifest import RESTORE
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.subword import SPACE_SYMBOL, load_processor, normalised, word_numbers

_BYTE = "<0x{:02X}>"
_LANGUAGE_BEGIN, _LANGUAGE_END = ">>", "<<"


class MarianVocabulary:
    """Pieces of a SentencePiece model under the ids of a list, special symbols at nmtkit's ids."""

    kind = "marian"
    suffix = ".model"

    def __init__(self, model: bytes, pieces: Sequence[str], name: str) -> None:
        """Take a model and the entries in the order of their ids.

        Args:
            model: the bytes of a SentencePiece model; its own ids do not matter.
            pieces: each once; first what stands for unknown pieces, for the beginning (Marian's
                padding, whose embedding its decoder begins with) and for the end.
            name: what messages call the model.

        Raises:
            DamagedError: the bytes are no SentencePiece model.
        """
        self.model = model
        self._processor = load_processor(model, name)
        self._pieces = tuple(pieces)
        self._ids = {piece: index for index, piece in enumerate(pieces)}
        assert len(self._ids) == len(pieces) > EOS_ID, "a piece appears twice, or one is missing"
        self.size = len(pieces)

    @staticmethod
    def load(path: Path) -> "MarianVocabulary":
        """Read what `save` wrote.

        Raises:
            DamagedError: a file is missing, or is not what it should be.
        """
        list_path = _list_path(path)
        try:
            model, pieces = path.read_bytes(), json.loads(list_path.read_bytes())
        except OSError as error:
            raise DamagedError(f"{error.filename}: {error.strerror}; {RESTORE}") from error
        except (ValueError, RecursionError):
            raise DamagedError(f"{list_path}: not JSON; {RESTORE}") from None
        is_list = isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces)
        if not is_list or not len({*pieces}) == len(pieces) > EOS_ID:
            raise DamagedError(f"{list_path}: not a list of different pieces; {RESTORE}")
        return MarianVocabulary(model, pieces, str(path))

    @property
    def data(self) -> bytes:
        """The bytes of both files that `save` writes."""
        return self.model + self._list

    @property
    def _list(self) -> bytes:
        return (json.dumps(self._pieces, ensure_ascii=False, indent=0) + "\n").encode()

    def save(self, path: Path) -> None:
        """Write the model, and beside it the list of pieces."""
        path.write_bytes(self.model)
        _list_path(path).write_bytes(self._list)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """Ids for what the vocabulary lacks: that of unknown pieces, and those of bytes."""
        bytes_ = (self._ids.get(_BYTE.format(byte)) for byte in range(256))
        return frozenset({UNK_ID, *(index for index in bytes_ if index is not None)})

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, without special symbols; a blank line has none."""
        symbol, text = self.split_symbol(line)
        pieces: list[str] = self._processor.encode(text, out_type=str)
        ids = [self._id_of_text(piece) for piece in pieces]
        return [self._ids[symbol], *ids] if symbol else ids

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Cut a line behind the symbol of a language, if it begins with one."""
        name, end, text = line.partition(_LANGUAGE_END)
        symbol = name + end
        is_symbol = name.startswith(_LANGUAGE_BEGIN) and symbol in self._ids
        return (symbol, text) if is_symbol else ("", line)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, begin and end symbols skipped."""
        pieces = [self._pieces[index] for index in ids if index not in (BOS_ID, EOS_ID)]
        text: str = self._processor.decode_pieces(pieces)
        # Of a piece that only the other side's model knows, the symbol for a space is left.
        return text.replace(SPACE_SYMBOL, " ").strip(" ")

    def normalise(self, line: str) -> str:
        """Return what `encode` sees of a line but for its language: NFKC, single spaces."""
        _, text = self.split_symbol(line)
        return normalised(self._processor, text)

    def piece(self, index: int) -> str:
        """Return the entry of an id."""
        return self._pieces[index]

    def words(self, ids: Sequence[int]) -> list[int]:
        """Number, from 0, the word of `decode(ids)` between spaces that each token is part of."""
        return word_numbers(ids, self.piece)

    def _id_of_text(self, piece: str) -> int:
        """Return the id of a piece; one spelled like the begin or end symbol is unknown."""
        index = self._ids.get(piece, UNK_ID)
        return UNK_ID if index in (BOS_ID, EOS_ID) else index


def _list_path(path: Path) -> Path:
    """Return the path of the list of pieces that belongs to a model's."""
    return path.with_suffix(".json")
