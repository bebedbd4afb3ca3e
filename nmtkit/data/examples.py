"""Examples of dropped pairs, by which one sees what a filter does."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nmtkit.data.corpus import Pair
from nmtkit.data.filters import Reason

_NUM_EXAMPLES = 3
_MAX_CHARACTERS = 80
_CUT = "..."


@dataclass(frozen=True)
class Example:
    """A pair that was dropped.

    Attributes:
        reason: why.
        line: where it stands.
        source, target: its lines, cut where they are long.
    """

    reason: Reason
    line: int
    source: str
    target: str

    @staticmethod
    def of(reason: Reason, line: int, pair: Pair) -> "Example":
        """Make the example of a pair."""
        return Example(reason, line, _shorten(pair[0]), _shorten(pair[1]))


def first_of_each(examples: Iterable[Example]) -> list[Example]:
    """Return the first few examples of each reason, in their order."""
    seen: Counter[Reason] = Counter()
    chosen = []
    for example in examples:
        seen[example.reason] += 1
        if seen[example.reason] <= _NUM_EXAMPLES:
            chosen.append(example)
    return chosen


def _shorten(line: str) -> str:
    return line if len(line) <= _MAX_CHARACTERS else line[: _MAX_CHARACTERS - len(_CUT)] + _CUT
