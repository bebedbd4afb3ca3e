"""Parallel text that is read more than once: counted, sampled, compared, split into chunks."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmtkit.text.lines import read_pair, resolve

Pair = tuple[str, str]

_CHUNK_PAIRS = 2048
_CHUNK_CHARACTERS = 2**20
_KEY_BYTES = 8


@dataclass(frozen=True)
class Corpus:
    """Two parallel files, read and found good once.

    Attributes:
        prefix: their path without the languages' suffixes.
        num_pairs: lines of either file.
    """

    prefix: str
    source: Path
    target: Path
    num_pairs: int

    @staticmethod
    def find(prefix: str, source_lang: str, target_lang: str) -> "Corpus":
        """Find the files of a prefix and read them through.

        Raises:
            ConfigError: a file is missing or cannot be read.
            DataError: no lines, unequal numbers of lines, or invalid UTF-8.
        """
        source, target = resolve(prefix, source_lang), resolve(prefix, target_lang)
        return Corpus(prefix, source, target, sum(1 for _ in read_pair(source, target)))

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs of lines."""
        return read_pair(self.source, self.target)


def sample(corpora: Sequence[Corpus], num_wanted: int) -> Iterator[Pair]:
    """Yield at most `num_wanted` pairs, at even distances over all corpora."""
    total = sum(corpus.num_pairs for corpus in corpora)
    wanted = min(num_wanted, total)
    pairs = (pair for corpus in corpora for pair in corpus.pairs())
    for number, pair in enumerate(pairs):
        if (number + 1) * wanted // total > number * wanted // total:
            yield pair


@dataclass(frozen=True)
class Chunk:
    """Some pairs in a row of one corpus.

    Attributes:
        corpus: which one.
        first: number of the first pair, counted over all corpora.
        pairs: at least one.
    """

    corpus: int
    first: int
    pairs: list[Pair]


def chunks(corpora: Sequence[Corpus]) -> Iterator[Chunk]:
    """Cut corpora into chunks of bounded size."""
    first = 0
    for index, corpus in enumerate(corpora):
        pairs: list[Pair] = []
        num_characters = 0
        for source_line, target_line in corpus.pairs():
            pairs.append((source_line, target_line))
            num_characters += len(source_line) + len(target_line)
            if len(pairs) == _CHUNK_PAIRS or num_characters > _CHUNK_CHARACTERS:
                yield Chunk(index, first, pairs)
                first += len(pairs)
                pairs, num_characters = [], 0
        if pairs:
            yield Chunk(index, first, pairs)
            first += len(pairs)


def line_key(*lines: str) -> int:
    """Return the 64-bit key that lines, or pairs of lines, are compared by.

    White space counts as one space, or none at the ends. Among 36 million different pairs, the
    chance that any two have one key is 4 in 100 000.
    """
    text = "\n".join(" ".join(line.split()) for line in lines)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_KEY_BYTES).digest(), "little")
