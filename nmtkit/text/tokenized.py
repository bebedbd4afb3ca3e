"""A vocabulary over text tokenised by Moses; input and output are plain text.

Most published systems at the time of "Attention Is All You Need" used such text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from nmtkit.errors import DataError
from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.words import Words

_TAGS = re.compile(r"\s*((?:<\S+>(?:\s+|$))+)")


class Tokenized:
    """Moses' tokeniser in front of a vocabulary; tags `<...>` at the start of a line are kept."""

    def __init__(self, vocabulary: Subword | Words, lang: str) -> None:
        """Load Moses' rules.

        Args:
            vocabulary: of tokenised text.
            lang: code of the language, such as de.
        """
        self.vocabulary = vocabulary
        self.kind = vocabulary.kind
        self.suffix = vocabulary.suffix
        self.size = vocabulary.size
        self.unknown_ids = vocabulary.unknown_ids
        self._moses = Moses(lang)

    @property
    def segmentation(self) -> str:
        """Name of the segmentation of the tokens."""
        return self.vocabulary.segmentation

    def with_tokens(self, tokens: Sequence[str]) -> "Tokenized":
        """Return a vocabulary with further entries at its end.

        Raises:
            DataError: the tokeniser splits or changes a token, or it cannot be an entry.
        """
        check_unchanged(tokens, self._moses)
        return Tokenized(self.vocabulary.with_tokens(tokens), self._moses.lang)

    @property
    def data(self) -> bytes:
        """Bytes that determine the encoding: the language of the rules, and the vocabulary."""
        return f"moses {self._moses.lang}\n".encode() + self.vocabulary.data

    def save(self, path: Path) -> None:
        """Write the file of the vocabulary."""
        self.vocabulary.save(path)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, without special symbols; a blank line has none."""
        return self.vocabulary.encode(tokenize(self._moses, line))

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Split the language symbol from a line, as the vocabulary does."""
        return self.vocabulary.split_symbol(line)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the detokenised text of ids without begin and end symbols."""
        return self._moses.detokenize(self.vocabulary.decode(ids), unescapes=False)

    def normalize(self, line: str) -> str:
        """Return the line after tokenisation, normalisation and detokenisation."""
        tokens = self.vocabulary.normalize(tokenize(self._moses, line))
        return self._moses.detokenize(tokens, unescapes=False)

    def piece(self, index: int) -> str:
        """Return the entry of an id."""
        return self.vocabulary.piece(index)

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        """Return the index, from 0, of the word of `decode(ids)` that each token is part of."""
        tokens = self.vocabulary.decode(ids).split(" ")
        words = self.decode(ids).split(" ")
        # Detokenising only removes spaces, so both have the same other characters in order.
        ends = list(accumulate(map(len, words)))
        begins = accumulate(map(len, tokens), initial=0)
        last = len(words) - 1
        word_of_token = [min(bisect_right(ends, begin), last) for begin in begins]
        return [word_of_token[index] for index in self.vocabulary.word_indices(ids)]


def check_unchanged(tokens: Iterable[str], moses: Moses) -> None:
    """Raise DataError for a token that the tokeniser splits or changes."""
    for token in tokens:
        found = tokenize(moses, token)
        if found != token:
            raise DataError(
                f"token {token!r} is {found!r} after Moses' tokenisation of {moses.lang}; leave it "
                "out (a tag such as <bt> at the start of a line is kept)"
            )


def tokenize(moses: Moses, line: str) -> str:
    """Return a line normalised and tokenised without escapes; tags at its start are unchanged."""
    tags = _TAGS.match(line)
    text = line[tags.end() :] if tags else line
    tokens = moses.tokenize(moses.normalize(text), escapes=False)
    return " ".join([*tags[1].split(), tokens]).rstrip() if tags else tokens
