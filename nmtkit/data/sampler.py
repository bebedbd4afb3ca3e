"""Sampler: the pairs of each update, as a pure function of lengths, seed, epoch and shard.

Nothing here depends on hardware. A resumed run needs only a position, three integers, to continue
with the same updates as the uninterrupted run.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nmtkit.data.binary import SIDES, Contents, Dataset, Indices, Pairs, Shards
from nmtkit.errors import ConfigError
from nmtkit.storage.json_data import decode

Lengths = NDArray[np.integer]

_WEIGHT_UNIT = 1_000_000
"""Weights are multiples of 1 / _WEIGHT_UNIT, so that fractions add up exactly over epochs."""

_FIRST_PAIRS = 1024
"""Pairs checked first; they nearly always suffice to show that an epoch uses a shard."""


def with_temperature(dataset: Dataset, temperature: float) -> Dataset:
    """Return a dataset whose directions have shares of the epoch proportional to n^(1/T).

    The weights of a direction with n pairs, weights included, are multiplied by n^(1/T - 1), and
    all by a number that keeps the size of the epoch.
    Source: Arivazhagan et al. 2019, https://arxiv.org/abs/1907.05019, section 4.2.

    Args:
        dataset: with the weights of its texts.
        temperature: T, at least 1.
    """
    if temperature == 1 or not dataset.directions:
        return dataset
    sizes = direction_pairs(dataset)
    powers = {direction: size ** (1 / temperature) for direction, size in sizes.items()}
    factor = math.fsum(sizes.values()) / math.fsum(powers.values())
    weights = [
        weight * factor * powers[direction] / sizes[direction]
        for weight, direction in zip(dataset.weights, dataset.directions, strict=True)
    ]

    def open_shard(number: int) -> Pairs:
        pairs = dataset.train[number]
        sizes = (size for size, _ in pairs.weight_runs)
        return replace(pairs, weight_runs=tuple(zip(sizes, weights, strict=True)))

    return replace(dataset, weights=weights, train=Shards(open_shard, len(dataset.train)))


def direction_pairs(dataset: Dataset) -> dict[str, float]:
    """Return the training pairs of an epoch on average by direction, which weights multiply."""
    found: dict[str, float] = {}
    names = dataset.directions or [""] * len(dataset.weights)
    for name, weight, number in zip(names, dataset.weights, _corpus_pairs(dataset), strict=True):
        found[name] = found.get(name, 0.0) + weight * number
    return found


def describe_directions(dataset: Dataset) -> Iterator[str]:
    """Yield a line about each direction: how often it is seen, and whether it is validated."""
    sizes = direction_pairs(dataset) if dataset.directions else {}
    validated = {one.direction for one in dataset.valid_texts}
    for direction, size in sizes.items():
        unseen = "" if direction in validated else "; it has no validation text"
        share = size / math.fsum(sizes.values())
        yield f"direction {direction}: {size:,.0f} pairs per epoch, {share:.1%}{unseen}"


def epoch_pairs(dataset: Dataset) -> float:
    """Return the training pairs of an epoch on average, which weights multiply."""
    return math.fsum(map(operator.mul, dataset.weights, _corpus_pairs(dataset)))


def _corpus_pairs(dataset: Dataset) -> list[int]:
    """Return the number of training pairs of each corpus."""
    return [*map(sum, zip(*decode(Contents, dataset.manifest).shards, strict=True))]


def epoch_tokens(dataset: Dataset, weigh: Callable[[float], float] = float) -> float:
    """Return the training tokens of an epoch, of the side that has more.

    Args:
        dataset: the dataset.
        weigh: weight of a text -> occurrences of its pairs: on average, or at most by `math.ceil`.
    """
    texts = dataset.manifest["counts"]["corpora"]
    return max(
        math.fsum(
            weigh(weight) * text[side]["tokens"]
            for weight, text in zip(dataset.weights, texts, strict=True)
        )
        for side in SIDES
    )


@dataclass(frozen=True)
class Position:
    """A position in the sequence of updates.

    Attributes:
        epoch: number of complete passes over the corpus.
        shard: index in the epoch's order of shards.
        index: index of the next update in the plan of that shard.
    """

    epoch: int
    shard: int
    index: int


@dataclass(frozen=True)
class Update:
    """The pairs of one update, shortest first.

    Attributes:
        shard: number of the shard that holds them.
        pairs: their indices in the shard.
        num_source_tokens, num_target_tokens: sums of their lengths, including end symbols.
    """

    shard: int
    pairs: Indices
    num_source_tokens: int
    num_target_tokens: int


class Sampler:
    """Plans the updates of every epoch; holds the lengths of one shard at a time."""

    def __init__(self, shards: Sequence[Pairs], update_tokens: int, seed: int) -> None:
        """Store the settings of the sequence of updates.

        Args:
            shards: the training pairs, at least one; `check_budget` has passed.
            update_tokens: maximum number of source tokens, and of target tokens, per update.
            seed: determines the order of pairs and updates.
        """
        self._shards = shards
        self._weight_runs = [shard.weight_runs for shard in shards]
        self._filled = [i for i, runs in enumerate(self._weight_runs) if any(n for n, _ in runs)]
        self._update_tokens = update_tokens
        self._seed = seed
        self._orders: dict[int, list[int]] = {}

    def updates(self, position: Position) -> Iterator[tuple[Position, Update]]:
        """Yield updates endlessly, each with the position after it."""
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
        """Split a shard into updates of pairs of similar lengths, in random order.

        Returns:
            indices of each update's pairs. Together they have every pair of the shard as often as
            its weight gives in this epoch: once without weights.
        """
        source, target = _lengths(self._shards[shard])
        # Stream 0 of an epoch draws the order of its shards.
        random = np.random.Philox(np.random.SeedSequence((self._seed, epoch, shard + 1)))
        pairs = np.repeat(np.arange(len(source)), self._occurrences(epoch, shard, len(source)))
        pairs = pairs[_permutation(random, len(pairs))]
        batches = batch_by_length(source[pairs], target[pairs], self._update_tokens)
        return [pairs[batches[number]] for number in _permutation(random, len(batches))]

    def shard_order(self, epoch: int) -> list[int]:
        """Draw the order of the shards of an epoch; shards without pairs are left out."""
        if epoch not in self._orders:
            used = [shard for shard in self._filled if self._is_used(epoch, shard)]
            random = np.random.Philox(np.random.SeedSequence((self._seed, epoch, 0)))
            self._orders = {epoch: [used[index] for index in _permutation(random, len(used))]}
        return self._orders[epoch]

    def _begin(self, epoch: int, place: int) -> Position:
        """Return the start of the shard at a place of the epoch's order.

        After the last shard, it is the start of the next epoch with pairs.
        """
        while place >= len(self.shard_order(epoch)):
            epoch, place = epoch + 1, 0
        return Position(epoch, place, 0)

    def _after(self, position: Position, index: int, num_updates: int) -> Position:
        """Return the position after the update with this index in a plan."""
        if index + 1 < num_updates:
            return Position(position.epoch, position.shard, index + 1)
        return self._begin(position.epoch, position.shard + 1)

    def _is_used(self, epoch: int, shard: int) -> bool:
        """Return whether an epoch uses a pair of a shard that has pairs."""
        weight_runs = self._weight_runs[shard]
        if any(num_pairs and weight >= 1 for num_pairs, weight in weight_runs):
            return True
        num_pairs = sum(length for length, _ in weight_runs)
        return any(
            self._occurrences(epoch, shard, first).any() for first in (_FIRST_PAIRS, num_pairs)
        )

    def _occurrences(self, epoch: int, shard: int, first: int) -> Indices:
        """Return the number of occurrences in an epoch of each of the first pairs of a shard.

        Each pair has an offset u from [0, 1), drawn once. A pair of weight w occurs
        floor(n * w + u) times in the first n epochs together.
        """
        weight_runs = self._weight_runs[shard]
        weights = [round(weight * _WEIGHT_UNIT) for _, weight in weight_runs]
        weight = np.repeat(np.array(weights), [num_pairs for num_pairs, _ in weight_runs])[:first]
        # A spawn key gives a stream that differs from those of all epochs.
        seeds = np.random.SeedSequence((self._seed, 0, shard + 1), spawn_key=(0,))
        offset = (np.random.Philox(seeds).random_raw(len(weight)) % _WEIGHT_UNIT).astype(np.int64)
        before, after = (n * weight + offset for n in (epoch, epoch + 1))
        return after // _WEIGHT_UNIT - before // _WEIGHT_UNIT


def batch_by_length(source: Lengths, target: Lengths, max_tokens: int) -> list[Indices]:
    """Sort pairs by target, then source length, and fill batches greedily within a token budget.

    Args:
        source, target: lengths (pairs,), none above max_tokens; equal ones keep their order.
        max_tokens: maximum number of source tokens, and of target tokens, per batch.

    Returns:
        indices of each batch's pairs, the shortest pairs first.
    """
    order = np.lexsort((source, target))
    ends = [np.cumsum(lengths[order], dtype=np.int64) for lengths in (source, target)]
    batches = []
    first = 0
    while first < len(order):
        before = [end[first - 1] if first else 0 for end in ends]
        last = min(
            int(np.searchsorted(end, start + max_tokens, side="right"))
            for end, start in zip(ends, before, strict=True)
        )
        assert last > first, f"pair {order[first]} is longer than {max_tokens} tokens"
        batches.append(order[first:last])
        first = last
    return batches


def check_budget(shards: Sequence[Pairs], update_tokens: int) -> None:
    """Raise ConfigError with the longest pair if it does not fit into an update."""
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
            f"{where} has {sizes}, more than an update of {update_tokens} tokens can hold; set "
            f"--update-tokens to at least {longest}, or preprocess with a smaller --max-length"
        )


def _lengths(shard: Pairs) -> tuple[Lengths, Lengths]:
    return shard.source.lengths(), shard.target.lengths()


def _permutation(random: np.random.Philox, size: int) -> Indices:
    """Draw a permutation from raw bits, which numpy keeps stable; its shuffle may change."""
    return np.argsort(random.random_raw(size), kind="stable")
