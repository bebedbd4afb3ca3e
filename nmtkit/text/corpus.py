"""Parallel text that is read several times: counted, sampled, compared, split into chunks."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path

from nmtkit.errors import ConfigError, DataError
from nmtkit.text.lines import count_lines, read_lines, read_pair, resolve

Pair = tuple[str, str]
Watch = Callable[[str, Iterator[Pair]], AbstractContextManager[Iterable[Pair]]]
"""Enters the pairs of files, whose names it gets, to show the progress of reading."""

CHUNK_PAIRS = 2048
CHUNK_CHARACTERS = 2**20
_KEY_BYTES = 8


@dataclass(frozen=True)
class LinkedLine:
    """The word alignment of a pair.

    Attributes:
        where: the file and line, for messages.
        text: its links, as they are written.
        tokens: source and target in the tokenisation that the links count; None = they count words.
    """

    where: str
    text: str
    tokens: Pair | None


@dataclass(frozen=True)
class Corpus:
    """Two parallel files that have been read once without an error.

    Attributes:
        prefix: their path without the suffix of the language.
        languages: the suffixes.
        source, target: their paths.
        num_pairs: number of lines of each file.
        states: inode, size in bytes and time of change of each file, when it was found.
        links_path: the file with the links of each pair, if it has a word alignment.
        tokens: the text in the tokenisation that the links count; None = they count its words.
    """

    prefix: str
    languages: tuple[str, str]
    source: Path
    target: Path
    num_pairs: int
    states: Mapping[Path, tuple[int, int, int]]
    links_path: Path | None = None
    tokens: "Corpus | None" = None

    @staticmethod
    def find(
        prefix: str,
        source_lang: str,
        target_lang: str,
        watch: Watch = lambda _names, pairs: nullcontext(pairs),
    ) -> "Corpus":
        """Find the files of a prefix and count their lines.

        Args:
            prefix: path without the suffix of the language.
            source_lang, target_lang: the suffixes.
            watch: enters the pairs that it gets, and can show what they are and how many.

        Raises:
            ConfigError: a file is missing, cannot be read, or is a pipe or device.
            DataError: no lines, different numbers of lines, invalid UTF-8, or damaged gzip.
        """
        source, target = resolve(prefix, source_lang), resolve(prefix, target_lang)
        for path in (source, target):
            _check_is_file(path)
        states = {path: _state(path) for path in (source, target)}
        with watch(f"{source} and {target}", read_pair(source, target)) as pairs:
            num_pairs = sum(1 for _ in pairs)
        return Corpus(prefix, (source_lang, target_lang), source, target, num_pairs, states)

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs of lines; DataError at the end if a file has changed since it was found.

        Raises:
            DataError, ConfigError: see `read_pair`, too.
        """
        yield from islice(read_pair(self.source, self.target), self.num_pairs)
        self._check_unchanged()

    def with_links(self, path: Path, tokens: "Corpus | None") -> "Corpus":
        """Return the corpus with the word alignment in a file; `tokens` is as in `Corpus`.

        Raises:
            ConfigError: the file cannot be read.
            DataError: it or the tokens have another number of lines.
        """
        for one in (path, *([tokens.source] if tokens else [])):
            check_num_lines(one, self)
        states = {**self.states, path: _state(path)}
        return replace(self, states=states, links_path=path, tokens=tokens)

    def links(self) -> Iterator[LinkedLine]:
        """Yield the links of each pair, if there are any; raises as `pairs`."""
        if self.links_path:
            tokens = self.tokens.pairs() if self.tokens else repeat(None)
            lines = islice(read_lines(self.links_path), self.num_pairs)
            for number, (line, pair) in enumerate(zip(lines, tokens, strict=False), 1):
                yield LinkedLine(f"{self.links_path}:{number}", line, pair)
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        for path, state in self.states.items():
            if _state(path) != state:
                raise DataError(
                    f"{path}: changed while this command read it; run it again when no other "
                    "program writes there"
                )


def check_num_lines(path: Path, corpus: Corpus) -> None:
    """Check that a file has a line for each pair of a corpus, and can be read again.

    Raises:
        ConfigError: it is a pipe or device, or cannot be read.
        DataError: it has another number of lines.
    """
    _check_is_file(path)
    number = count_lines(path)
    if number != corpus.num_pairs:
        raise DataError(
            f"{path} has {number} lines, and {corpus.source} {corpus.num_pairs}; line n of one "
            "must belong to line n of the other"
        )


def _check_is_file(path: Path) -> None:
    """Raise ConfigError for a pipe or device; opening reports what is missing or a folder."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ConfigError(
            f"{path}: is a pipe or device, and this text is read more than once; write it to a "
            "file, and give that"
        )


def _state(path: Path) -> tuple[int, int, int]:
    """Return what differs after any change of a file; zeros if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class Chunk:
    """Consecutive pairs of one corpus.

    Attributes:
        corpus: index of the corpus.
        first: number of the first pair over all corpora, from 0.
        line: line number of the first pair in its corpus, from 1.
        pairs: at least one pair.
        links: the word alignment of each pair, or none.
    """

    corpus: int
    first: int
    line: int
    pairs: list[Pair]
    links: Sequence[LinkedLine] = ()


def chunks(
    corpora: Sequence[Corpus],
    max_pairs: int = CHUNK_PAIRS,
    max_characters: int = CHUNK_CHARACTERS,
) -> Iterator[Chunk]:
    """Split corpora into chunks; the last pair of each may exceed `max_characters`."""
    num_before = 0
    for index, corpus in enumerate(corpora):
        links = corpus.links() if corpus.links_path else repeat(None, corpus.num_pairs)
        pairs: list[Pair] = []
        linked: list[LinkedLine] = []
        line, num_characters = 1, 0
        for number, (pair, of_pair) in enumerate(zip(corpus.pairs(), links, strict=True), 1):
            pairs.append(pair)
            linked += [of_pair] if of_pair else []
            num_characters += sum(map(len, pair))
            is_full = len(pairs) == max_pairs or num_characters > max_characters
            if is_full or number == corpus.num_pairs:
                yield Chunk(index, num_before + line - 1, line, pairs, linked)
                line += len(pairs)
                pairs, linked, num_characters = [], [], 0
        num_before += corpus.num_pairs


def line_key(*lines: str) -> int:
    """Return a 64-bit hash of a line or of a pair of lines, for comparisons.

    White space is normalised: single spaces, none at the ends. Among 36 million distinct pairs, the
    probability that any two have the same key is 4 in 100 000.
    """
    text = "\n".join(" ".join(line.split()) for line in lines)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_KEY_BYTES).digest(), "little")
