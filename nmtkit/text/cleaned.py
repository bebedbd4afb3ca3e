"""A vocabulary over cleaned text: without HTML entities, and in a Unicode normal form.

Source: Unicode Standard Annex #15, https://unicode.org/reports/tr15/ (normal forms)
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args

from nmtkit.errors import DataError
from nmtkit.text.characters import unescape
from nmtkit.text.subword import Subword
from nmtkit.text.tokenized import Tokenized
from nmtkit.text.words import Words

NormalForm = Literal["none", "nfc", "nfkc"]
AnyVocabulary = TypeVar("AnyVocabulary")
NORMAL_FORMS: tuple[NormalForm, ...] = get_args(NormalForm)


@dataclass(frozen=True)
class Cleaning:
    """How lines are cleaned, before all else.

    Attributes:
        unescape: HTML entities become characters.
        normalize: Unicode normal form; "none" = unchanged.
    """

    unescape: bool
    normalize: NormalForm

    @property
    def names(self) -> list[str]:
        """The steps, in order; none if lines are not cleaned."""
        form = [] if self.normalize == "none" else [self.normalize]
        return [*(["unescape"] if self.unescape else []), *form]

    def clean(self, line: str) -> str:
        """Return a cleaned line."""
        text = unescape(line) if self.unescape else line
        if self.normalize == "none":
            return text
        form = cast(Literal["NFC", "NFKC"], self.normalize.upper())
        return unicodedata.normalize(form, text)

    def check_unchanged(self, tokens: Iterable[str]) -> None:
        """Raise DataError for a token that cleaning changes."""
        for token in tokens:
            found = self.clean(token)
            if found != token:
                raise DataError(
                    f"token {token!r} is {found!r} after the vocabulary's cleaning "
                    f"({', '.join(self.names)}); give that"
                )


class Cleaned:
    """Cleaning in front of a vocabulary."""

    def __init__(self, vocabulary: Subword | Words | Tokenized, cleaning: Cleaning) -> None:
        """Put them together.

        Args:
            vocabulary: of cleaned text.
            cleaning: at least one step.
        """
        assert cleaning.names, cleaning
        self.vocabulary = vocabulary
        self.cleaning = cleaning
        self.kind = vocabulary.kind
        self.suffix = vocabulary.suffix
        self.size = vocabulary.size
        self.unknown_ids = vocabulary.unknown_ids

    @property
    def segmentation(self) -> str:
        """Name of the segmentation of the cleaned text."""
        return self.vocabulary.segmentation

    def with_tokens(self, tokens: Sequence[str]) -> "Cleaned":
        """Return a vocabulary with further entries at its end.

        Raises:
            DataError: cleaning changes a token, or it cannot be an entry.
        """
        self.cleaning.check_unchanged(tokens)
        return Cleaned(self.vocabulary.with_tokens(tokens), self.cleaning)

    @property
    def data(self) -> bytes:
        """Bytes that determine the encoding: the cleaning, and the vocabulary."""
        return f"{' '.join(self.cleaning.names)}\n".encode() + self.vocabulary.data

    def save(self, path: Path) -> None:
        """Write the file of the vocabulary."""
        self.vocabulary.save(path)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, without special symbols; a blank line has none."""
        return self.vocabulary.encode(self.cleaning.clean(line))

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Split the language symbol from a line, as the vocabulary does."""
        return self.vocabulary.split_symbol(line)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids without begin and end symbols."""
        return self.vocabulary.decode(ids)

    def normalize(self, line: str) -> str:
        """Return the cleaned line as the vocabulary normalises it."""
        return self.vocabulary.normalize(self.cleaning.clean(line))

    def piece(self, index: int) -> str:
        """Return the entry of an id."""
        return self.vocabulary.piece(index)

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        """Return the index, from 0, of the word of `decode(ids)` that each token is part of."""
        return self.vocabulary.word_indices(ids)


def cleaned(vocabulary: AnyVocabulary, cleaning: Cleaning) -> AnyVocabulary | Cleaned:
    """Add cleaning in front of a vocabulary; without a step, the vocabulary is returned."""
    if not cleaning.names:
        return vocabulary
    assert isinstance(vocabulary, Subword | Words | Tokenized), vocabulary
    return Cleaned(vocabulary, cleaning)


def steps_before(vocabulary: object) -> list[str]:
    """Return what is done to text before its segmentation, such as `unescape`, `moses`."""
    if isinstance(vocabulary, Cleaned):
        return [*vocabulary.cleaning.names, *steps_before(vocabulary.vocabulary)]
    return ["moses"] if isinstance(vocabulary, Tokenized) else []
