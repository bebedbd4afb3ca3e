"""Which training pairs are kept; a drop always has one reason, so that drops can be counted."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from nmtkit.config.preprocessing import FilterConfig
from nmtkit.text.corpus import Pair, line_key

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
"""Words, one of which the name of each letter of a script has."""


@dataclass(frozen=True)
class HeldOut:
    """Text that is to be translated later, so that nothing of it may be learnt.

    Attributes:
        sources, targets: keys of its lines.
    """

    sources: frozenset[int]
    targets: frozenset[int]

    @staticmethod
    def of(pairs: Iterable[Pair]) -> "HeldOut":
        """Take the keys of all lines."""
        sources, targets = set(), set()
        for source, target in pairs:
            sources.add(line_key(source))
            targets.add(line_key(target))
        return HeldOut(frozenset(sources), frozenset(targets))

    def shares_a_line(self, pair: Pair) -> bool:
        """Tell whether either side of a pair is a line of the text."""
        source, target = pair
        return bool(self.sources) and (
            line_key(source) in self.sources or line_key(target) in self.targets
        )


def drop_reason(
    pair: Pair,
    num_tokens: tuple[int, int],
    is_repeated: bool,
    config: FilterConfig,
    held_out: HeldOut,
) -> Reason | None:
    """Return why a pair is dropped, the first reason of `REASONS`, or None if it is kept.

    Args:
        pair: its lines.
        num_tokens: of its sides, end symbols counted, tags not. The ratio is taken without end
            symbols, so that it means what it says for short sentences too.
        is_repeated: an equal pair came before.
        config: the limits.
        held_out: text that no side may be a line of.
    """
    shorter, longer = sorted(num_tokens)
    if shorter == 1:
        return "empty"
    if longer > config.max_length:
        return "too long"
    if config.max_ratio and longer - 1 > config.max_ratio * (shorter - 1):
        return "ratio"
    scripts = (config.source_script, config.target_script)
    for line, script in zip(pair, scripts, strict=True):
        if script != ANY_SCRIPT and not is_mostly(line, script):
            return "script"
    if config.drop_copies and pair[0].split() == pair[1].split():
        return "copy"
    if held_out.shares_a_line(pair):
        return "held out"
    return "duplicate" if is_repeated else None


def is_mostly(line: str, script: str) -> bool:
    """Tell whether at least half of a line's letters are of a script; so if it has none.

    Args:
        line: any text.
        script: a key of `NAMES_OF_SCRIPTS`.
    """
    letters = [character for character in line if character.isalpha()]
    names = NAMES_OF_SCRIPTS[script]
    num_fitting = sum(not names.isdisjoint(_unicode_name(letter)) for letter in letters)
    return 2 * num_fitting >= len(letters)


@lru_cache(maxsize=2**16)
def _unicode_name(letter: str) -> tuple[str, ...]:
    """Return the words of a letter's name, such as LATIN SMALL LETTER A."""
    return tuple(re.split("[ -]", unicodedata.name(letter, "")))
