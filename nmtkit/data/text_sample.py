"""A sample of parallel text, taken while the text is read: for findings about the data.

It depends on the text alone. Its memory has a bound, however long the text is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from zlib import crc32

from nmtkit.text.corpus import Pair
from nmtkit.text.lines import TOO_LONG

BLOCK_PAIRS = 64
"""Consecutive pairs of a block."""

MAX_BLOCKS = 128
"""Blocks of a sample; at least half of this number if the text has as many."""

MAX_CHARACTERS = 400
"""Characters of a line that are kept."""

MAX_KEYS = 2**13
"""Distinct pairs that are compared with all others."""

MAX_EXAMPLES = 3
"""Line numbers that are kept as examples."""

MIN_SHARED_CHARACTERS = 20
"""Shorter lines, such as "Thank you.", are in two texts by chance."""

_NUM_KEYS = 2**32


@dataclass(frozen=True)
class Block:
    """Consecutive pairs of a text.

    Attributes:
        first: line number of the first pair, from 1.
        pairs: `BLOCK_PAIRS` pairs, or fewer at the end of the text; long lines are truncated, and
            a line that was not read is empty.
    """

    first: int
    pairs: Sequence[Pair]


@dataclass
class _Occurrences:
    selector: int
    number: int
    second: int = 0


class TextSample:
    """Blocks of pairs, repeated pairs, and lines that another text has too.

    Every `stride`-th block is kept; when there are too many, the stride is doubled, and every
    second one is dropped. For repeated pairs, the sample has all occurrences of some pairs, chosen
    by a hash of their source. When there are too many pairs, half of the hashes are left out.

    Attributes:
        num_pairs: pairs of the text.
        blocks: the kept blocks.
        shared: lines of the other text that this text has, with the first line number here.
    """

    def __init__(self, other: Sequence[Pair] = ()) -> None:
        """Begin a sample.

        Args:
            other: pairs of the other text's sample; its short lines are not compared.
        """
        self.num_pairs = 0
        self.blocks: list[Block] = []
        self.shared: dict[str, int] = {}
        self._stride = 1
        self._others = tuple(
            frozenset(line for line in side if len(line) >= MIN_SHARED_CHARACTERS)
            for side in (zip(*other, strict=True) if other else ((), ()))
        )
        self._occurrences: dict[int, _Occurrences] = {}
        self._bound = _NUM_KEYS

    @property
    def num_others(self) -> int:
        """Distinct lines of the other text that are compared."""
        return sum(map(len, self._others))

    @property
    def pairs(self) -> list[Pair]:
        """All pairs of the blocks."""
        return [pair for block in self.blocks for pair in block.pairs]

    @property
    def lines(self) -> list[int]:
        """The line number of each of the pairs, from 1."""
        return [block.first + i for block in self.blocks for i in range(len(block.pairs))]

    @property
    def repeated(self) -> float:
        """Share of the pairs that are equal to an earlier one, estimated from the chosen pairs."""
        total = sum(one.number for one in self._occurrences.values())
        return 1 - len(self._occurrences) / total if total else 0.0

    @property
    def repeated_lines(self) -> list[int]:
        """Line numbers of the second occurrences of some pairs."""
        second = sorted(one.second for one in self._occurrences.values() if one.second)
        return second[:MAX_EXAMPLES]

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs of a text unchanged, and sample them."""
        rest = iter(pairs)
        for index, block in enumerate(iter(lambda: list(islice(rest, BLOCK_PAIRS)), [])):
            if index % self._stride == 0:
                self._keep(index, block)
            sources, targets = zip(*block, strict=True)
            for side, other in zip((sources, targets), self._others, strict=True):
                lines = [line[:MAX_CHARACTERS] for line in side]  # as in the other sample
                if not other.isdisjoint(lines):
                    self._find_shared(lines, other)
            selectors = [*map(crc32, map(str.encode, sources))]
            if min(selectors) < self._bound:
                self._count(selectors, block)
            self.num_pairs += len(block)
            yield from block

    def _keep(self, index: int, block: Sequence[Pair]) -> None:
        """Keep a block."""
        if len(self.blocks) == MAX_BLOCKS:
            self.blocks = self.blocks[::2]
            self._stride *= 2  # which this block is a multiple of
        pairs = [("", "") if TOO_LONG in pair else _truncated(pair) for pair in block]
        self.blocks.append(Block(index * BLOCK_PAIRS + 1, pairs))

    def _find_shared(self, lines: Sequence[str], other: frozenset[str]) -> None:
        """Remember the lines that the other text has."""
        for number, line in enumerate(lines, self.num_pairs + 1):
            if line in other:
                self.shared.setdefault(line, number)

    def _count(self, selectors: Sequence[int], block: Sequence[Pair]) -> None:
        """Count the occurrences of the chosen pairs."""
        for number, (selector, pair) in enumerate(
            zip(selectors, block, strict=True), self.num_pairs + 1
        ):
            if selector >= self._bound or not any(map(str.strip, pair)):
                continue
            key = hash(pair)  # of 64 bits; not random in what is counted
            seen = self._occurrences.get(key)
            if seen is None:
                self._occurrences[key] = _Occurrences(selector, 1)
                continue
            seen.number += 1
            seen.second = seen.second or number
        while len(self._occurrences) > MAX_KEYS:
            self._bound //= 2
            self._occurrences = {
                key: one for key, one in self._occurrences.items() if one.selector < self._bound
            }


def _truncated(pair: Pair) -> Pair:
    source, target = pair
    return source[:MAX_CHARACTERS], target[:MAX_CHARACTERS]
