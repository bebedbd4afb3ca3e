"""Filters of training pairs; each dropped pair has exactly one reason.

Duplicates are found by hashes of all pairs, which are partitioned by value into files on disk, each
sorted in memory: memory does not grow with the text, except one bit per pair.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.config.problems import shown
from nmtkit.errors import DataError
from nmtkit.progress.counting import QUICK_ITEMS, SILENT, WorkReporter
from nmtkit.text.corpus import CHUNK_PAIRS, Corpus, Pair, check_num_lines, line_key
from nmtkit.text.lines import TOO_LONG, numbered_chunks, read_lines

Reason = Literal["empty", "too long", "ratio", "script", "copy", "held out", "score", "duplicate"]
REASONS: tuple[Reason, ...] = get_args(Reason)

ANY_SCRIPT = "any"
NAMES_OF_SCRIPTS: dict[str, frozenset[str]] = {
    "latin": frozenset({"LATIN"}),
    "cyrillic": frozenset({"CYRILLIC"}),
    "greek": frozenset({"GREEK"}),
    "arabic": frozenset({"ARABIC"}),
    "hebrew": frozenset({"HEBREW"}),
    "armenian": frozenset({"ARMENIAN"}),
    "georgian": frozenset({"GEORGIAN"}),
    "ethiopic": frozenset({"ETHIOPIC"}),
    "devanagari": frozenset({"DEVANAGARI"}),
    "bengali": frozenset({"BENGALI"}),
    "tamil": frozenset({"TAMIL"}),
    "thai": frozenset({"THAI"}),
    "han": frozenset({"CJK"}),
    "japanese": frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    "korean": frozenset({"HANGUL", "CJK"}),
}
"""Words in the Unicode names of a script's letters; each letter's name has one of them.

Narrower scripts come before wider ones.
"""

_SYLLABLES = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL"})
_LETTERS_OF_SYLLABLE = 3
"""Letters that a syllable or Chinese character stands for, as "Microsoft" does for a short line."""

_NARROWER_SHARE = 0.95
"""Share of a wider script's letters above which a text is in the narrower one; Japanese and Korean
text has many more letters of its own."""

_PART_PAIRS = 2**22
_BATCH_PAIRS = 2**18

_RECORD = np.dtype([("key", "<u8"), ("number", "<u8")])
Records = NDArray[np.void]


@dataclass(frozen=True)
class HeldOutText:
    """Held-out text, such as the test set, whose lines must not be in the training data.

    Attributes:
        sources, targets: keys of its lines, see `line_key`.
    """

    sources: frozenset[int]
    targets: frozenset[int]

    @staticmethod
    def of(pairs: Iterable[Pair]) -> "HeldOutText":
        """Compute the keys of all lines."""
        sources, targets = set(), set()
        for source, target in pairs:
            sources.add(line_key(source))
            targets.add(line_key(target))
        return HeldOutText(frozenset(sources), frozenset(targets))

    def on_either_side(self) -> "HeldOutText":
        """Return the text of several directions, each line of which may be on either side."""
        lines = self.sources | self.targets
        return HeldOutText(lines, lines)

    def has_line_of(self, pair: Pair) -> bool:
        """Return whether the source of a pair is a source line of this text, or its target one."""
        source, target = pair
        return bool(self.sources) and (
            line_key(source) in self.sources or line_key(target) in self.targets
        )


def reasons_of(config: FilterConfig) -> list[Reason]:
    """Return the reasons for which these settings drop pairs; the other filters are off."""
    is_on: dict[Reason, bool] = {
        "empty": True,
        "too long": True,
        "ratio": config.max_ratio > 0,
        "script": {config.source_script, config.target_script} != {ANY_SCRIPT},
        "copy": config.drop_copies,
        "held out": len(config.held_out) > 0,
        "score": len(config.scores) > 0,
        "duplicate": config.drop_duplicates,
    }
    return [reason for reason in REASONS if is_on[reason]]


def drop_reason(
    pair: Pair,
    num_tokens: tuple[int, int],
    flagged: Reason | None,
    config: FilterConfig,
    held_out: HeldOutText,
) -> Reason | None:
    """Return the first reason of `REASONS` to drop a pair, or None to keep it.

    Args:
        pair: its lines; `TOO_LONG` for one that was not read.
        num_tokens: tokens of each side, with end symbols, without tags. Length ratios leave end
            symbols out, because these would distort short sentences.
        flagged: "duplicate" if an earlier pair is equal, "score" if its score is too low.
        config: settings of the filters.
        held_out: text whose lines no kept pair may have.
    """
    if TOO_LONG in pair:
        return "too long"
    shorter, longer = sorted(num_tokens)
    if shorter == 1:
        return "empty"
    if longer > config.max_length:
        return "too long"
    if config.max_ratio and longer - 1 > config.max_ratio * (shorter - 1):
        return "ratio"
    scripts = (config.source_script, config.target_script)
    for line, script in zip(pair, scripts, strict=True):
        if script != ANY_SCRIPT and not is_mostly_in_script(line, script):
            return "script"
    if config.drop_copies and pair[0].split() == pair[1].split():
        return "copy"
    if held_out.has_line_of(pair):
        return "held out"
    return flagged


class PairFlags:
    """A flag for each pair, by its number over all corpora, such as True = duplicate."""

    def __init__(self, num_pairs: int) -> None:
        """Set all flags to False."""
        self._bits = np.zeros(-(-num_pairs // 8), np.uint8)

    def flag(self, numbers: NDArray[np.unsignedinteger]) -> None:
        """Set the flags of these pairs."""
        bits = np.left_shift(1, numbers % 8, dtype=np.uint8, casting="unsafe")
        np.bitwise_or.at(self._bits, (numbers // 8).astype(np.int64), bits)

    def flags_of(self, first: int, num_pairs: int) -> NDArray[np.bool_]:
        """Return the flags (num_pairs,) of consecutive pairs."""
        start = first // 8
        bits = self._bits[start : -(-(first + num_pairs) // 8)]
        flags = np.unpackbits(bits, bitorder="little").view(np.bool_)
        return flags[first - 8 * start :][:num_pairs]


def find_low_scores(
    config: FilterConfig, corpora: Sequence[Corpus], reporter: WorkReporter
) -> dict[Reason, PairFlags]:
    """Read the scores of the training texts.

    Args:
        config: a file for each text, or none; and the lowest score that is kept.
        corpora: the texts.
        reporter: receives the progress.

    Returns:
        By the reason "score", the flags of the pairs with a lower score, if there are scores.

    Raises:
        ConfigError: a file cannot be read, or is a pipe.
        DataError: a line is not a number, or a text has another number of pairs.
    """
    if not config.scores:
        return {}
    flags, first = PairFlags(sum(one.num_pairs for one in corpora)), 0
    for name, corpus in zip(config.scores, corpora, strict=True):
        check_num_lines(Path(name), corpus)
        lines = islice(read_lines(Path(name)), corpus.num_pairs)
        with reporter.track(lines, "read", "scores", corpus.num_pairs, QUICK_ITEMS) as tracked:
            for begin, chunk in numbered_chunks(tracked, CHUNK_PAIRS):
                scores = [_score(line, f"{name}:{n}") for n, line in enumerate(chunk, begin)]
                low = np.flatnonzero(np.array(scores) < config.keep_above)
                flags.flag((first + begin - 1 + low).astype(np.uint64))
        first += corpus.num_pairs
    return {"score": flags}


def _score(line: str, where: str) -> float:
    try:
        score = float(line)
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise DataError(
            f"{where}: {shown(line)} is not a number; write one per line (see `cut -f`)"
        )
    return score


def is_mostly_in_script(line: str, script: str) -> bool:
    """Return whether at least half of a line's letters are of a script; True without letters.

    Chinese, Japanese and Korean characters count as three letters.

    Args:
        line: any text.
        script: a key of `NAMES_OF_SCRIPTS`.
    """
    return sum(map(_BALANCES[script].__getitem__, line)) >= 0


def main_script(lines: Sequence[str]) -> str | None:
    """Return the script of more than half of all letters of lines; None = another, or several.

    It is a key of `NAMES_OF_SCRIPTS`: the narrower of two, such as han, unless the wider one has
    notably more letters.
    """
    letters = Counter(filter(str.isalpha, "".join(lines)))
    counts = {
        script: sum(number for letter, number in letters.items() if balance[letter] > 0)
        for script, balance in _BALANCES.items()
    }
    least = max(letters.total() / 2, _NARROWER_SHARE * max(counts.values()))
    return next((script for script, number in counts.items() if number > least), None)


class _Balance(dict[str, int]):
    """What each character counts for a script, or below 0 against it, computed when first met."""

    def __init__(self, script: str) -> None:
        self._names = NAMES_OF_SCRIPTS[script]

    def __missing__(self, character: str) -> int:
        words = re.split("[ -]", unicodedata.name(character, ""))  # such as LATIN SMALL LETTER A
        weight = _LETTERS_OF_SYLLABLE if not _SYLLABLES.isdisjoint(words) else 1
        weight *= character.isalpha()
        self[character] = found = -weight if self._names.isdisjoint(words) else weight
        return found


_BALANCES = {script: _Balance(script) for script in NAMES_OF_SCRIPTS}


def find_duplicates(
    corpora: Sequence[Corpus], folder: Path, reporter: WorkReporter = SILENT
) -> PairFlags:
    """Find the pairs whose lines equal those of an earlier pair; see `line_key`.

    Args:
        corpora: the training text.
        folder: place for temporary files, 16 bytes per pair.
        reporter: receives the progress.
    """
    num_pairs = sum(corpus.num_pairs for corpus in corpora)
    duplicates = PairFlags(num_pairs)
    num_parts = -(-num_pairs // _PART_PAIRS)
    with TemporaryDirectory(dir=folder) as scratch:
        paths = [Path(scratch) / str(part) for part in range(num_parts)]
        pairs = (pair for corpus in corpora for pair in corpus.pairs())
        with reporter.track(pairs, "compared", "pairs", num_pairs, QUICK_ITEMS) as compared:
            for records in _batches(compared):
                parts = records["key"] % np.uint64(num_parts)
                for part in np.unique(parts):
                    with paths[int(part)].open("ab") as file:
                        file.write(records[parts == part].tobytes())
        for path in filter(Path.exists, paths):
            duplicates.flag(_repeated(np.fromfile(path, _RECORD)))
    return duplicates


def _batches(pairs: Iterable[Pair]) -> Iterator[Records]:
    """Yield the keys and numbers of all pairs."""
    numbered = ((line_key(*pair), number) for number, pair in enumerate(pairs))
    while len(batch := np.array(list(islice(numbered, _BATCH_PAIRS)), _RECORD)):
        yield batch


def _repeated(records: Records) -> NDArray[np.uint64]:
    """Return the numbers of all records except the first of each key."""
    records = records[np.argsort(records["key"], kind="stable")]
    is_repeated = records["key"][1:] == records["key"][:-1]
    numbers: NDArray[np.uint64] = records["number"][1:][is_repeated]
    return numbers
