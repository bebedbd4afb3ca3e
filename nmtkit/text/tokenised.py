"""A vocabulary over text that Moses normalises and tokenises; what is decoded is detokenised.

The layout of words that most published systems of the time of "Attention Is All You Need" had. What
goes in and comes out is plain text all the same.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from nmtkit.text.moses import Moses
from nmtkit.text.subword import Subword
from nmtkit.text.words import Words

_TAGS = re.compile(r"\s*((?:<\S+>(?:\s+|$))+)")


class Tokenised:
    """A vocabulary, and Moses before it. Tags `<...>` that a line begins with stay as they are."""

    def __init__(self, vocabulary: Subword | Words, lang: str) -> None:
        """Take the vocabulary of tokenised text, and the code of its language."""
        self.vocabulary = vocabulary
        self.kind = vocabulary.kind
        self.suffix = vocabulary.suffix
        self.size = vocabulary.size
        self.unknown_ids = vocabulary.unknown_ids
        self._lang = lang
        self._moses = Moses(lang)

    @property
    def data(self) -> bytes:
        """What decides everything: the bytes of the vocabulary, and whose rules Moses takes."""
        return f"moses {self._lang}\n".encode() + self.vocabulary.data

    def save(self, path: Path) -> None:
        """Write the file of the vocabulary."""
        self.vocabulary.save(path)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a line, without special symbols; a blank line has none."""
        return self.vocabulary.encode(tokenise(self._moses, line))

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Return no symbol, and the line: nothing in it is meant for the whole of it."""
        return self.vocabulary.split_symbol(line)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the detokenised text of ids, begin and end symbols skipped."""
        return self._moses.detokenise(self.vocabulary.decode(ids), unescapes=False)

    def normalise(self, line: str) -> str:
        """Return what is left of a line that is tokenised and detokenised."""
        tokens = self.vocabulary.normalise(tokenise(self._moses, line))
        return self._moses.detokenise(tokens, unescapes=False)

    def piece(self, index: int) -> str:
        """Return the entry of an id."""
        return self.vocabulary.piece(index)

    def words(self, ids: Sequence[int]) -> list[int]:
        """Number, from 0, the word of `decode(ids)` between spaces that each token is part of."""
        tokens = self.vocabulary.decode(ids).split(" ")
        words = self.decode(ids).split(" ")
        # Detokenising only takes spaces away, so that both have the same characters.
        ends = list(accumulate(map(len, words)))
        begins = accumulate(map(len, tokens), initial=0)
        last = len(words) - 1
        word_of_token = [min(bisect_right(ends, begin), last) for begin in begins]
        return [word_of_token[number] for number in self.vocabulary.words(ids)]


def tokenise(moses: Moses, line: str) -> str:
    """Return a line normalised and tokenised, nothing escaped, tags at its beginning whole."""
    tags = _TAGS.match(line)
    text = line[tags.end() :] if tags else line
    tokens = moses.tokenise(moses.normalise(text), escapes=False)
    return " ".join([*tags[1].split(), tokens]).rstrip() if tags else tokens
