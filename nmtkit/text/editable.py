"""Text of ids that may be changed: ids to text and back.

Tags and language symbols at the beginning of a line are kept as ids. A line with other entries that
stay whole, those of --whole-tokens, is not changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nmtkit.symbols import EOS_ID, UNK_ID
from nmtkit.text.cleaned import Cleaned
from nmtkit.text.marian import MarianVocabulary
from nmtkit.text.subword import SPACE_SYMBOL, Subword
from nmtkit.text.subword_file import SubwordFile
from nmtkit.text.tokenized import Tokenized


class _Vocabulary(Protocol):
    def encode(self, line: str) -> list[int]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def piece(self, index: int) -> str: ...


@dataclass(frozen=True)
class EditableLine:
    """A line whose text may be changed.

    Attributes:
        symbols: ids of the tags and language symbols at its beginning.
        text: the rest.
    """

    symbols: tuple[int, ...]
    text: str


class EditableText:
    """Converts ids of a vocabulary to text that may be changed, and back."""

    def __init__(self, vocabulary: _Vocabulary) -> None:
        """Find the entries that stay whole."""
        self._vocabulary = vocabulary
        self._whole = whole_entries(vocabulary)

    def decode(self, ids: Sequence[int]) -> EditableLine | None:
        """Return the line that ids, with the end symbol, spell.

        Returns:
            None if encoding its text would not give these ids: it has unknown words or broken
            characters, or its vocabulary was not the one that segmented it. Also if entries that
            stay whole are within it.
        """
        first = self._end_of_symbols(ids)
        symbols, rest = tuple(ids[:first]), [*ids[first:-1]]
        text = self._vocabulary.decode(rest)
        is_exact = text and self._vocabulary.encode(text) == rest
        return EditableLine(symbols, text) if is_exact and self._is_plain(rest) else None

    def encode(self, line: EditableLine) -> list[int] | None:
        """Return the ids of a line with the end symbol.

        Returns:
            None if it has no text, a word of it is unknown, or an entry that stays whole.
        """
        ids = self._vocabulary.encode(line.text)
        return [*line.symbols, *ids, EOS_ID] if ids and self._is_plain(ids) else None

    def _is_plain(self, ids: Sequence[int]) -> bool:
        """Return whether ids are of text alone."""
        return UNK_ID not in ids and self._whole.isdisjoint(ids)

    def _end_of_symbols(self, ids: Sequence[int]) -> int:
        """Return the number of ids of the tags and language symbols at the beginning."""
        end = 0
        while self._whole:
            # A symbol that does not include the space before it follows a space of its own.
            place = end + (self._vocabulary.piece(ids[end]) == SPACE_SYMBOL)
            if place >= len(ids) or ids[place] not in self._whole:
                break
            end = place + 1
        return end


def whole_entries(vocabulary: object) -> frozenset[int]:
    """Return the ids of entries that stay whole: tags, language symbols, --whole-tokens."""
    while isinstance(vocabulary, Cleaned | Tokenized):
        vocabulary = vocabulary.vocabulary
    if isinstance(vocabulary, Subword):
        return frozenset(SubwordFile.of(vocabulary.data).whole)
    if isinstance(vocabulary, MarianVocabulary):
        pieces = {*SubwordFile.of(vocabulary.model).whole.values()}
        entries = map(vocabulary.piece, range(vocabulary.size))
        return frozenset(
            index
            for index, piece in enumerate(entries)
            if piece in pieces or vocabulary.split_symbol(piece)[0] == piece
        )
    return frozenset()
