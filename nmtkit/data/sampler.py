"""Which pairs an update holds: a pure function of the lengths, the seed, the epoch and the shard.

Nothing here depends on hardware, so a position, three integers, is all that a resumed run needs to
go on with the very updates that the uninterrupted run would have made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nmtkit.errors import ConfigError

Indices = NDArray[np.int64]
Lengths = NDArray[np.integer]


class HasLengths(Protocol):
    """One side of a shard: the number of tokens of each sequence, end symbols counted."""

    def lengths(self) -> Lengths:
        """Return the lengths (pairs,)."""
        ...


class Shard(Protocol):
    """What the sampler must know of a shard; `nmtkit.data.binary.Pairs` is one."""

    @property
    def source(self) -> HasLengths:
        """The source side."""
        ...

    @property
    def target(self) -> HasLengths:
        """The target side."""
        ...

    def __len__(self) -> int:
        """Return the number of pairs."""
        ...


@dataclass(frozen=True)
class Position:
    """Where in the sequence of updates a run stands.

    Attributes:
        epoch: passes over the corpus that are complete.
        shard: place in the epoch's order of shards.
        index: next update of that shard's plan.
    """

    epoch: int
    shard: int
    index: int


@dataclass(frozen=True)
class Update:
    """The pairs of one update, shortest first.

    Attributes:
        shard: number of the shard that holds them.
        pairs: their indices in it.
        num_source_tokens, num_target_tokens: sums of their lengths, end symbols counted.
    """

    shard: int
    pairs: Indices
    num_source_tokens: int
    num_target_tokens: int


class Sampler:
    """Plans the updates of every epoch; holds the lengths of one shard at a time."""

    def __init__(self, shards: Sequence[Shard], update_tokens: int, seed: int) -> None:
        """Store what the updates follow from.

        Args:
            shards: the training pairs, at least one; `check_budget` holds for them.
            update_tokens: source tokens, and target tokens, of an update at most.
            seed: what the order of pairs and updates is drawn from.
        """
        self._shards = shards
        self._filled = np.flatnonzero([len(shard) for shard in shards])
        self._update_tokens = update_tokens
        self._seed = seed

    def updates(self, position: Position) -> Iterator[tuple[Position, Update]]:
        """Yield updates without end, each with the position after it."""
        while True:
            shard = self.shard_order(position.epoch)[position.shard]
            source, target = _lengths(self._shards[shard])
            plan = self.plan(position.epoch, shard)
            for index in range(position.index, len(plan)):
                pairs = plan[index]
                num_source, num_target = int(source[pairs].sum()), int(target[pairs].sum())
                position = self._after(position, index, len(plan))
                yield position, Update(shard, pairs, num_source, num_target)
            assert position.index == 0, f"{position} is not in a plan of {len(plan)} updates"

    def plan(self, epoch: int, shard: int) -> list[Indices]:
        """Cut a shard into updates of pairs of similar lengths, in random order.

        Returns:
            indices of each update's pairs; together every pair of the shard once.
        """
        source, target = _lengths(self._shards[shard])
        # Stream 0 of an epoch draws the order of its shards.
        random = np.random.Philox(np.random.SeedSequence((self._seed, epoch, shard + 1)))
        pairs = _permutation(random, len(source))
        cuts = cut_sorted(source[pairs], target[pairs], self._update_tokens)
        return [pairs[cuts[number]] for number in _permutation(random, len(cuts))]

    def shard_order(self, epoch: int) -> list[int]:
        """Draw the order in which an epoch visits the shards that hold pairs."""
        random = np.random.Philox(np.random.SeedSequence((self._seed, epoch, 0)))
        return [int(shard) for shard in self._filled[_permutation(random, len(self._filled))]]

    def _after(self, position: Position, index: int, num_updates: int) -> Position:
        """Return the position after one update of a plan."""
        if index + 1 < num_updates:
            return Position(position.epoch, position.shard, index + 1)
        if position.shard + 1 < len(self._filled):
            return Position(position.epoch, position.shard + 1, 0)
        return Position(position.epoch + 1, 0, 0)


def cut_sorted(source: Lengths, target: Lengths, max_tokens: int) -> list[Indices]:
    """Sort pairs by target, then source length, and cut them greedily into runs within a budget.

    Args:
        source, target: lengths (pairs,), none above max_tokens; equal ones keep their order.
        max_tokens: source tokens, and target tokens, of a run at most.

    Returns:
        indices of each run's pairs, the shortest pairs first.
    """
    order = np.lexsort((source, target))
    ends = [np.cumsum(lengths[order], dtype=np.int64) for lengths in (source, target)]
    runs = []
    first = 0
    while first < len(order):
        before = [end[first - 1] if first else 0 for end in ends]
        last = min(
            int(np.searchsorted(end, start + max_tokens, side="right"))
            for end, start in zip(ends, before, strict=True)
        )
        assert last > first, f"pair {order[first]} is longer than {max_tokens} tokens"
        runs.append(order[first:last])
        first = last
    return runs


def check_budget(shards: Sequence[Shard], update_tokens: int) -> None:
    """Raise ConfigError, naming the longest pair, if some pair does not fit into an update."""
    longest = 0
    for number, shard in enumerate(shards):
        source, target = _lengths(shard)
        longer = np.maximum(source, target)
        if longer.max(initial=0) > longest:
            pair = int(longer.argmax())
            longest = int(longer[pair])
            where = f"pair {pair} of training shard {number}"
            sizes = f"{source[pair]} source and {target[pair]} target tokens"
    if longest > update_tokens:
        raise ConfigError(
            f"{where} has {sizes}, more than an update of {update_tokens} may hold; set "
            f"--update-tokens to at least {longest}, or preprocess with a smaller --max-length"
        )


def _lengths(shard: Shard) -> tuple[Lengths, Lengths]:
    return shard.source.lengths(), shard.target.lengths()


def _permutation(random: np.random.Philox, size: int) -> Indices:
    """Draw a permutation from raw bits, which unlike numpy's shuffle are promised not to change."""
    return np.argsort(random.random_raw(size), kind="stable")
