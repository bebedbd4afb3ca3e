"""Filters of training pairs; each dropped pair has exactly one reason."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.text.corpus import Pair, line_key
from nmtkit.text.lines import TOO_LONG

Reason = Literal["empty", "too long", "ratio", "script", "copy", "held out", "duplicate"]
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

_NARROWER_SHARE = 0.95
"""Share of a wider script's letters above which a text is in the narrower one; Japanese and Korean
text has many more letters of its own."""


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
        "duplicate": config.drop_duplicates,
    }
    return [reason for reason in REASONS if is_on[reason]]


def drop_reason(
    pair: Pair,
    num_tokens: tuple[int, int],
    is_duplicate: bool,
    config: FilterConfig,
    held_out: HeldOutText,
) -> Reason | None:
    """Return the first reason of `REASONS` to drop a pair, or None to keep it.

    Args:
        pair: its lines; `TOO_LONG` for one that was not read.
        num_tokens: tokens of each side, with end symbols, without tags. Length ratios leave end
            symbols out, because these would distort short sentences.
        is_duplicate: an earlier pair is equal.
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
    return "duplicate" if is_duplicate else None


def is_mostly_in_script(line: str, script: str) -> bool:
    """Return whether at least half of a line's letters are of a script; True without letters.

    Args:
        line: any text.
        script: a key of `NAMES_OF_SCRIPTS`.
    """
    letters = [character for character in line if character.isalpha()]
    names = NAMES_OF_SCRIPTS[script]
    num_in_script = sum(not names.isdisjoint(_unicode_name(letter)) for letter in letters)
    return 2 * num_in_script >= len(letters)


def main_script(lines: Sequence[str]) -> str | None:
    """Return the script of more than half of all letters of lines; None = another, or several.

    It is a key of `NAMES_OF_SCRIPTS`: the narrower of two, such as han, unless the wider one has
    notably more letters.
    """
    letters = Counter(filter(str.isalpha, "".join(lines)))
    counts = {
        script: sum(
            number
            for letter, number in letters.items()
            if not names.isdisjoint(_unicode_name(letter))
        )
        for script, names in NAMES_OF_SCRIPTS.items()
    }
    least = max(letters.total() / 2, _NARROWER_SHARE * max(counts.values()))
    return next((script for script, number in counts.items() if number > least), None)


def mostly_in_other_script(lines: Sequence[str], script: str) -> list[bool]:
    """Return whether each line is mostly in another script; fast for many lines."""
    names = NAMES_OF_SCRIPTS[script]
    others = "".join(
        letter
        for letter in {*"".join(lines)}
        if letter.isalpha() and names.isdisjoint(_unicode_name(letter))
    )
    if not others:
        return [False] * len(lines)
    has_other = re.compile(f"[{re.escape(others)}]").search
    return [bool(has_other(line)) and not is_mostly_in_script(line, script) for line in lines]


@lru_cache(maxsize=2**16)
def _unicode_name(letter: str) -> tuple[str, ...]:
    """Return the words of a letter's Unicode name, such as LATIN SMALL LETTER A."""
    return tuple(re.split("[ -]", unicodedata.name(letter, "")))
