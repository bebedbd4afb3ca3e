"""Closed vocabularies: a line is split at white space, and each token is an entry or unknown.

They are for text that another tool has segmented. The file has one word per line, in the order of
ids.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Self

from nmtkit.errors import DataError
from nmtkit.symbols import BOS_ID, EOS_ID, SPECIAL_WORDS, UNK_ID
from nmtkit.text.lines import read_list
from nmtkit.text.vocabulary import Vocabulary


class Words(Vocabulary):
    """Words and their ids; tokens spelled like a special symbol are unknown."""

    kind = segmentation = "words"
    suffix = ".txt"
    is_preparable = is_segmented = True

    def __init__(self, words: Sequence[str]) -> None:
        """Store words in the order of their ids, which begin after the three special symbols."""
        self._words = (*SPECIAL_WORDS, *words)
        self._ids = {word: i for i, word in enumerate(words, len(SPECIAL_WORDS))}
        self.size = len(self._words)
        assert len({*self._words}) == self.size, "a word appears twice, or is a special symbol"

    @staticmethod
    def count(
        lines: Iterable[str], size: int, min_count: int, symbols: Sequence[str] = ()
    ) -> "Words":
        """Select the most frequent words of a text; ties are in the order of code points.

        Args:
            lines: the text.
            size: maximum number of entries, including special symbols.
            min_count: rarer words are left out.
            symbols: words that come first, regardless of their frequency.

        Raises:
            DataError: no word is frequent enough.
        """
        counts = Counter(token for line in lines for token in line.split())
        for word in (*SPECIAL_WORDS, *symbols):
            counts.pop(word, None)
        frequent = [word for word in counts if counts[word] >= min_count]
        if not frequent:
            raise DataError(
                f"none of the training text's {len(counts)} distinct words occurs "
                f"{min_count} times; check the files, or lower --min-count"
            )
        ranked = sorted(frequent, key=lambda word: (-counts[word], word))
        return Words([*symbols, *ranked][: size - len(SPECIAL_WORDS)])

    @staticmethod
    def is_valid_entry(word: str) -> bool:
        """Return whether a text can be an entry: no white space, not a special symbol."""
        return word.split() == [word] and word not in SPECIAL_WORDS

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a list of words; it may begin with the three special symbols.

        Raises:
            ConfigError: the file cannot be read.
            DataError: an empty line, white space in a word, a repeated word, or no words.
        """
        entries = read_list(path)
        first = tuple(islice(entries, len(SPECIAL_WORDS)))
        num_leading = len(first) if first == SPECIAL_WORDS else 0
        words: dict[str, None] = {}  # in order
        for number, word in enumerate(chain(first[num_leading:], entries), num_leading + 1):
            problem = _find_problem(word, words)
            if problem:
                raise DataError(f"{path}:{number}: {problem}")
            words[word] = None
        if not words:
            raise DataError(f"{path}: no words; give a list of words, one per line")
        return cls([*words])

    @property
    def content(self) -> bytes:
        """The words, one per line, special symbols first."""
        return "".join(f"{word}\n" for word in self._words).encode()

    def piece(self, index: int) -> str:
        """Return the word of an id."""
        return self._words[index]

    def _encode(self, line: str) -> list[int]:
        return [self._ids.get(token, UNK_ID) for token in line.split()]

    def _decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._words[i] for i in ids if i not in (BOS_ID, EOS_ID))

    def _normalize(self, line: str) -> str:
        return " ".join(line.split())

    def _spell(self, line: str) -> list[str]:
        return line.split()

    def _with_tokens(self, tokens: Sequence[str]) -> Self:
        for token in tokens:
            if not self.is_valid_entry(token):
                raise DataError(f"token {token!r} is a special symbol; leave it out")
        return type(self)([*dict.fromkeys([*self._words[len(SPECIAL_WORDS) :], *tokens])])


def _find_problem(word: str, seen: Container[str]) -> str | None:
    """Describe the problem of an entry after the entries `seen`; None if it is valid."""
    if not word:
        return "empty line; delete it"
    if word.split() != [word]:
        return f"{word!r} is not one word; write one word without white space per line"
    if word in SPECIAL_WORDS:
        return (
            f"special symbol '{word}' is out of place; begin the list with the lines "
            f"{', '.join(SPECIAL_WORDS)}, or leave out all three"
        )
    if word in seen:
        return f"token '{word}' appears twice; delete one line"
    return None
