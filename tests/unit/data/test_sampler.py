import tracemalloc
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import overload

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nmtkit.data.binary import Indices, Pairs, Side
from nmtkit.data.sampler import Position, Sampler, Update, batch_by_length, check_budget
from nmtkit.errors import ConfigError
from tests.messages import refuses

START = Position(0, 0, 0)
LONGEST = 12
"""Longest side of the pairs that Hypothesis draws; the smallest budget that always works."""


class FakeSide(Side):
    """Sequences without ids."""

    def __init__(self, lengths: NDArray[np.integer]) -> None:
        self._lengths = lengths.astype(np.uint32)

    def lengths(self) -> NDArray[np.uint32]:
        return self._lengths

    def __len__(self) -> int:
        return len(self._lengths)


def make_shard(lengths: Sequence[tuple[int, int]]) -> Pairs:
    return weighted_shard([(lengths, 1.0)])


def weighted_shard(corpora: Sequence[tuple[Sequence[tuple[int, int]], float]]) -> Pairs:
    """Make a shard of the pairs of several corpora, each with its weight."""
    lengths = [pair for pairs, _ in corpora for pair in pairs]
    values = np.array(lengths, dtype=np.uint16).reshape(-1, 2)
    sizes = tuple((len(pairs), weight) for pairs, weight in corpora)
    return Pairs(FakeSide(values[:, 0]), FakeSide(values[:, 1]), sizes)


def random_shard(num_pairs: int, seed: int) -> Pairs:
    """Lengths as in real text: log-normal, sides correlated, at most 250."""
    generator = np.random.default_rng(seed)
    source = np.clip(np.rint(generator.lognormal(3.0, 0.6, num_pairs)), 1, 250)
    target = np.clip(np.rint(source * generator.lognormal(0, 0.2, num_pairs)), 1, 250)
    sides = [FakeSide(side.astype(np.uint16)) for side in (source, target)]
    return Pairs(sides[0], sides[1], ((num_pairs, 1.0),))


pair_lengths = st.tuples(st.integers(1, LONGEST), st.integers(1, LONGEST))
shards = st.lists(pair_lengths, max_size=40).map(make_shard)
corpora = st.lists(shards, min_size=1, max_size=4).filter(lambda c: any(len(s) for s in c))
budgets = st.integers(LONGEST, 5 * LONGEST)
seeds = st.integers(0, 2**63)


def one_epoch(sampler: Sampler, epoch: int) -> list[tuple[Position, Update]]:
    """Collect the updates of an epoch."""
    collected = []
    for position, update in sampler.updates(Position(epoch, 0, 0)):
        collected.append((position, update))
        if position.epoch > epoch:
            return collected
    raise AssertionError("updates are endless")


@given(corpora, budgets, seeds, st.integers(0, 3))
def test_every_pair_is_seen_once_per_epoch(
    corpus: list[Pairs], budget: int, seed: int, epoch: int
) -> None:
    seen = [
        (update.shard, int(pair))
        for _, update in one_epoch(Sampler(corpus, budget, seed), epoch)
        for pair in update.pairs
    ]
    everything = [(number, pair) for number, s in enumerate(corpus) for pair in range(len(s))]
    assert sorted(seen) == everything


@given(corpora, budgets, seeds)
def test_no_update_is_empty_or_exceeds_a_budget_and_its_counts_are_true(
    corpus: list[Pairs], budget: int, seed: int
) -> None:
    for _, update in one_epoch(Sampler(corpus, budget, seed), 0):
        shard = corpus[update.shard]
        num_source = sum(int(shard.source.lengths()[pair]) for pair in update.pairs)
        num_target = sum(int(shard.target.lengths()[pair]) for pair in update.pairs)
        assert len(update.pairs) > 0
        assert (update.num_source_tokens, update.num_target_tokens) == (num_source, num_target)
        assert max(num_source, num_target) <= budget


@given(corpora, budgets, seeds)
def test_positions_increase_and_an_epoch_ends_after_its_last_update(
    corpus: list[Pairs], budget: int, seed: int
) -> None:
    sampler = Sampler(corpus, budget, seed)
    positions = [START] + [position for position, _ in one_epoch(sampler, 0)]
    order = [(p.epoch, p.shard, p.index) for p in positions]
    assert all(earlier < later for earlier, later in pairwise(order))
    assert positions[-1] == Position(1, 0, 0)
    num_updates = sum(len(sampler.plan(0, number)) for number in range(len(corpus)))
    assert len(positions) == num_updates + 1


@given(shards, shards, budgets, seeds, st.integers(0, 5))
def test_a_plan_depends_only_on_seed_epoch_shard_and_lengths(
    shard: Pairs, other: Pairs, budget: int, seed: int, epoch: int
) -> None:
    fresh = Sampler([other, shard], budget, seed).plan(epoch, 1)
    used = Sampler([shard, shard, other], budget, seed)
    used.plan(epoch + 1, 0)
    if len(shard):
        list(islice(used.updates(START), 3))
    again = used.plan(epoch, 1)
    assert [u.tolist() for u in again] == [u.tolist() for u in fresh]


@pytest.mark.parametrize(
    ("seed", "epoch", "shard"), [(2, 0, 0), (1, 1, 0), (1, 0, 1)], ids=["seed", "epoch", "shard"]
)
def test_plans_differ_between(seed: int, epoch: int, shard: int) -> None:
    same = random_shard(2000, 1)
    plan = Sampler([same, same], 1000, 1).plan(0, 0)
    other = Sampler([same, same], 1000, seed).plan(epoch, shard)
    assert [u.tolist() for u in plan] != [u.tolist() for u in other]
    as_sets = {frozenset(u.tolist()) for u in plan}
    shared = as_sets & {frozenset(u.tolist()) for u in other}
    assert len(shared) < len(plan) / 2, "other company for most pairs, not only another order"


def test_each_epoch_has_another_order_of_shards() -> None:
    sampler = Sampler([make_shard([(1, 1)])] * 8, 10, 1)
    orders = [tuple(sampler.shard_order(epoch)) for epoch in range(6)]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert len(set(orders)) == len(orders)


def test_updates_have_pairs_of_similar_lengths() -> None:
    shard = random_shard(20_000, 1)
    target = shard.target.lengths().astype(int)
    spreads = [np.ptp(target[u]) for u in Sampler([shard], 4000, 1).plan(0, 0)]
    generator = np.random.default_rng(0)
    at_random = [
        np.ptp(part) for part in np.array_split(generator.permutation(target), len(spreads))
    ]
    assert np.mean(spreads) < np.mean(at_random) / 20


def test_updates_are_in_random_order_of_length() -> None:
    shard = random_shard(20_000, 1)
    means = [shard.target.lengths()[u].mean() for u in Sampler([shard], 4000, 1).plan(0, 0)]
    correlation = np.corrcoef(means, np.arange(len(means)))[0, 1]
    # About 110 updates: a correlation of 0.4 is four standard deviations.
    assert abs(correlation) < 0.4


def test_updates_are_nearly_full() -> None:
    updates = [update for _, update in one_epoch(Sampler([random_shard(20_000, 1)], 4000, 1), 0)]
    fill = [max(u.num_source_tokens, u.num_target_tokens) / 4000 for u in updates]
    assert sorted(fill)[1] > 0.9, "all but the last of the sorted shard"


def greedy_batches(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    """Fill batches pair by pair."""
    order = sorted(range(len(lengths)), key=lambda pair: (lengths[pair][1], lengths[pair][0]))
    batches: list[list[int]] = []
    for pair in order:
        batch = [*batches[-1], pair] if batches else [pair]
        if batches and all(sum(lengths[p][side] for p in batch) <= budget for side in (0, 1)):
            batches[-1] = batch
        else:
            batches.append([pair])
    return batches


@given(st.lists(pair_lengths, max_size=60), budgets)
def test_batches_are_filled_greedily(lengths: list[tuple[int, int]], budget: int) -> None:
    shard = make_shard(lengths)
    batches: list[Indices] = batch_by_length(shard.source.lengths(), shard.target.lengths(), budget)
    assert [batch.tolist() for batch in batches] == greedy_batches(lengths, budget)


def test_the_stream_of_pairs_never_changes() -> None:
    # A run resumed with a later version must continue with the same updates.
    sampler = Sampler([make_shard([(n, n) for n in (3, 1, 2, 2, 1, 3)])] * 2, 4, 1)
    updates = [update for _, update in one_epoch(sampler, 0)]
    assert [(update.shard, update.pairs.tolist()) for update in updates] == [
        (0, [5]),
        (0, [4, 1, 3]),
        (0, [2]),
        (0, [0]),
        (1, [0]),
        (1, [5]),
        (1, [4, 1, 2]),
        (1, [3]),
    ]


def test_sums_do_not_overflow_the_small_type_of_lengths() -> None:
    shard = make_shard([(250, 250)] * 1000)
    ((_, update),) = islice(Sampler([shard], 250_000, 1).updates(START), 1)
    assert (update.num_source_tokens, update.num_target_tokens) == (250_000, 250_000)


@given(corpora)
def test_the_smallest_budget_is_the_longest_side(corpus: list[Pairs]) -> None:
    sides = [side.lengths() for shard in corpus for side in (shard.source, shard.target)]
    longest = int(np.concatenate(sides).max())
    check_budget(corpus, longest)
    with refuses(ConfigError, f"update; --update-tokens {longest} --max-length"):
        check_budget(corpus, longest - 1)


def test_budget_error_names_the_longest_pair_and_the_option() -> None:
    corpus = [make_shard([(3, 4), (9, 2)]), make_shard([(1, 1), (5, 12), (2, 11)])]
    with refuses(ConfigError, "pair 1 shard 5 12 10; --update-tokens 12 --max-length"):
        check_budget(corpus, 10)


class ThousandMillion(Sequence[Pairs]):
    """1000 million pairs in shards of the usual size; lengths exist only while they are used."""

    num_pairs = 262_144

    def __len__(self) -> int:
        return 3815

    @overload
    def __getitem__(self, number: int) -> Pairs: ...
    @overload
    def __getitem__(self, number: slice) -> list[Pairs]: ...
    def __getitem__(self, number: int | slice) -> Pairs | list[Pairs]:
        assert isinstance(number, int)
        if number >= len(self):
            raise IndexError(number)
        lengths = np.full(self.num_pairs, 25)
        return Pairs(FakeSide(lengths), FakeSide(lengths), ((self.num_pairs, 1.0),))


def test_memory_is_bounded_by_one_shard() -> None:
    corpus = ThousandMillion()
    assert len(corpus) * corpus.num_pairs > 1_000_000_000
    tracemalloc.start()
    try:
        _, update = next(Sampler(corpus, 25_000, 1).updates(START))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(update.pairs) == 1000
    assert peak < 100 * corpus.num_pairs  # bytes per pair of one shard
