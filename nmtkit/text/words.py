"""Closed vocabularies: a line is cut at whitespace, and each token is an entry or unknown.

For text that is segmented already: subwords or tokens that another tool made.
The file has one word a line, and the line's number, from 0, is the word's id.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from nmtkit.errors import DataError
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.lines import read_lines

_SPECIAL_WORDS = ("<unk>", "<s>", "</s>")


class Words:
    """Words and their ids; a token of text that is spelled like a special symbol is unknown."""

    kind = "words"
    suffix = ".txt"
    unknown_ids = frozenset({UNK_ID})

    def __init__(self, words: Sequence[str]) -> None:
        """Take the words after the three special symbols, in the order of their ids."""
        self._words = (*_SPECIAL_WORDS, *words)
        self._ids = {word: i for i, word in enumerate(words, len(_SPECIAL_WORDS))}
        self.size = len(self._words)
        assert len({*self._words}) == self.size, "a word appears twice, or is a special symbol"

    @staticmethod
    def count(
        lines: Iterable[str], size: int, min_count: int, symbols: Sequence[str] = ()
    ) -> "Words":
        """Take the most frequent words, equally frequent ones in the order of code points.

        Args:
            lines: text, all of it counted.
            size: the largest number of entries, special symbols counted.
            min_count: rarer words are left out.
            symbols: further words, which come first, however often they are in the text.

        Raises:
            DataError: no word is left.
        """
        counts = Counter(token for line in lines for token in line.split())
        for word in (*_SPECIAL_WORDS, *symbols):
            counts.pop(word, None)
        frequent = [word for word in counts if counts[word] >= min_count]
        if not frequent:
            raise DataError(
                f"none of the training text's {len(counts)} different words appears "
                f"{min_count} times; check the files, or lower --min-count"
            )
        ranked = sorted(frequent, key=lambda word: (-counts[word], word))
        return Words([*symbols, *ranked][: size - len(_SPECIAL_WORDS)])

    @staticmethod
    def can_hold(word: str) -> bool:
        """Tell whether a text can be an entry: it has no white space, and is no special symbol."""
        return word.split() == [word] and word not in _SPECIAL_WORDS

    @staticmethod
    def load(path: Path) -> "Words":
        """Read a list of words; the three special symbols may lead it or be absent.

        Raises:
            ConfigError: the file cannot be read.
            DataError: an empty line, white space in a word, a word twice, or no word.
        """
        entries = list(read_lines(path))
        num_special = len(_SPECIAL_WORDS)
        num_leading = num_special if tuple(entries[:num_special]) == _SPECIAL_WORDS else 0
        words = entries[num_leading:]
        if not words:
            raise DataError(f"{path}: no word in it; give a list of words, one a line")
        seen: set[str] = set()
        for number, word in enumerate(words, num_leading + 1):
            problem = _find_problem(word, seen)
            if problem:
                raise DataError(f"{path}:{number}: {problem}")
            seen.add(word)
        return Words(words)

    @property
    def data(self) -> bytes:
        """The bytes of the file that `save` writes."""
        return "".join(f"{word}\n" for word in self._words).encode()

    def save(self, path: Path) -> None:
        """Write the words, special symbols first."""
        path.write_bytes(self.data)

    def encode(self, line: str) -> list[int]:
        """Return an id a token, without special symbols; a blank line has none."""
        return [self._ids.get(token, UNK_ID) for token in line.split()]

    def split_symbol(self, line: str) -> tuple[str, str]:
        """Return no symbol, and the line: nothing in it is meant for the whole of it."""
        return "", line

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words of ids joined by one space, begin and end symbols skipped."""
        return " ".join(self._words[i] for i in ids if i not in (BOS_ID, EOS_ID))

    def normalise(self, line: str) -> str:
        """Return what `encode` sees of a line: its tokens with one space between them."""
        return " ".join(line.split())

    def piece(self, index: int) -> str:
        """Return the word of an id."""
        return self._words[index]

    def words(self, ids: Sequence[int]) -> list[int]:
        """Number the words of ids: each is one."""
        return list(range(len(ids)))


def _find_problem(word: str, seen: set[str]) -> str | None:
    """Return what is wrong with an entry of a list that follows the entries `seen`."""
    if not word:
        return "empty line; delete it"
    if word.split() != [word]:
        return f"{word!r} is not one word; a line holds one word without white space"
    if word in _SPECIAL_WORDS:
        return (
            f"special symbol '{word}' out of place; begin the list with the lines "
            f"{', '.join(_SPECIAL_WORDS)}, or leave all three out"
        )
    if word in seen:
        return f"token '{word}' appears twice; delete one line"
    return None
