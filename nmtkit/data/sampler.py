"""Which pairs an update holds: a pure function of the lengths, the seed, the epoch and the shard.

Nothing here depends on hardware, so a position, three integers, is all that a resumed run needs to
go on with the very updates that the uninterrupted run would have made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nmtkit.data.binary import Indices
from nmtkit.errors import ConfigError

Lengths = NDArray[np.integer]

_WEIGHT_UNIT = 1_000_000
"""Weights are whole numbers of these parts, so that fractions add up exactly over epochs."""

_FEW_PAIRS = 1024
"""So many tell, nearly always, that an epoch has a pair of a shard."""


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

    @property
    def runs(self) -> Sequence[tuple[int, float]]:
        """Pairs in a row that come equally often, and how many times an epoch they do."""
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
        self._runs = [shard.runs for shard in shards]
        self._filled = [i for i, runs in enumerate(self._runs) if any(n for n, _ in runs)]
        self._update_tokens = update_tokens
        self._seed = seed
        self._orders: dict[int, list[int]] = {}

    def updates(self, position: Position) -> Iterator[tuple[Position, Update]]:
        """Yield updates without end, each with the position after it."""
        while True:
            if position.index == 0:
                position = self._begin(position.epoch, position.shard)
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
            indices of each update's pairs; together every pair of the shard as often as this epoch
            has it, which without weights is once.
        """
        source, target = _lengths(self._shards[shard])
        # Stream 0 of an epoch draws the order of its shards.
        random = np.random.Philox(np.random.SeedSequence((self._seed, epoch, shard + 1)))
        pairs = np.repeat(np.arange(len(source)), self._times(epoch, shard, len(source)))
        pairs = pairs[_permutation(random, len(pairs))]
        cuts = cut_sorted(source[pairs], target[pairs], self._update_tokens)
        return [pairs[cuts[number]] for number in _permutation(random, len(cuts))]

    def shard_order(self, epoch: int) -> list[int]:
        """Draw the order in which an epoch visits the shards that hold pairs."""
        if epoch not in self._orders:
            used = [shard for shard in self._filled if self._is_used(epoch, shard)]
            random = np.random.Philox(np.random.SeedSequence((self._seed, epoch, 0)))
            self._orders = {epoch: [used[place] for place in _permutation(random, len(used))]}
        return self._orders[epoch]

    def _begin(self, epoch: int, place: int) -> Position:
        """Return where a shard's plan begins, in the next epoch that has pairs after the last."""
        while place >= len(self.shard_order(epoch)):
            epoch, place = epoch + 1, 0
        return Position(epoch, place, 0)

    def _after(self, position: Position, index: int, num_updates: int) -> Position:
        """Return the position after one update of a plan."""
        if index + 1 < num_updates:
            return Position(position.epoch, position.shard, index + 1)
        return self._begin(position.epoch, position.shard + 1)

    def _is_used(self, epoch: int, shard: int) -> bool:
        """Tell whether an epoch has a pair of a shard that holds some."""
        runs = self._runs[shard]
        if any(num_pairs and weight >= 1 for num_pairs, weight in runs):
            return True
        num_pairs = sum(length for length, _ in runs)
        return any(self._times(epoch, shard, first).any() for first in (_FEW_PAIRS, num_pairs))

    def _times(self, epoch: int, shard: int, first: int) -> Indices:
        """Compute how often an epoch has each of the first pairs of a shard.

        A pair of weight w that begins at u, drawn once for all epochs from [0, 1), comes in the
        epochs before the n-th floor(n * w + u) times.
        """
        runs = self._runs[shard]
        weights = [round(weight * _WEIGHT_UNIT) for _, weight in runs]
        weight = np.repeat(np.array(weights), [num_pairs for num_pairs, _ in runs])[:first]
        # Unlike a further number, a spawn key makes a stream that no epoch's can be equal to.
        seeds = np.random.SeedSequence((self._seed, 0, shard + 1), spawn_key=(0,))
        begin = (np.random.Philox(seeds).random_raw(len(weight)) % _WEIGHT_UNIT).astype(np.int64)
        before, after = (n * weight + begin for n in (epoch, epoch + 1))
        return after // _WEIGHT_UNIT - before // _WEIGHT_UNIT


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
