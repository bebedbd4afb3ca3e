"""Weights of corpora, and shares by temperature: occurrences of each pair per epoch."""

import math
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.data.binary import Dataset, Pairs
from nmtkit.data.sampler import (
    Position,
    Sampler,
    direction_pairs,
    epoch_pairs,
    epoch_tokens,
    with_temperature,
)
from tests.tiny import prepared, tiny_directions, with_settings
from tests.unit.data.test_sampler import make_shard, pair_lengths, weighted_shard

START = Position(0, 0, 0)
NUM_EPOCHS = 4
# Multiples of 1/4: a whole number of occurrences in four epochs.
WEIGHTS = st.sampled_from([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.25])
SHARDS = st.lists(
    st.lists(st.lists(pair_lengths, max_size=6), min_size=2, max_size=2), min_size=1, max_size=3
).filter(lambda shards: any(any(corpora) for corpora in shards))

Corpus = tuple[list[Pairs], tuple[float, float]]


@st.composite
def weighted(draw: st.DrawFn) -> Corpus:
    weights = draw(st.tuples(WEIGHTS, WEIGHTS))
    shards = [weighted_shard(list(zip(corpora, weights, strict=True))) for corpora in draw(SHARDS)]
    return shards, weights


def occurrences(sampler: Sampler, num_shards: int, epoch: int) -> Counter[tuple[int, int]]:
    return Counter(
        (number, pair)
        for number in range(num_shards)
        for update in sampler.plan(epoch, number)
        for pair in update.tolist()
    )


@given(weighted(), st.integers(12, 60), st.integers(0, 2**63))
def test_a_pair_occurs_as_often_as_its_weight(corpus: Corpus, budget: int, seed: int) -> None:
    shards, weights = corpus
    sampler = Sampler(shards, budget, seed)
    epochs = [occurrences(sampler, len(shards), epoch) for epoch in range(NUM_EPOCHS)]
    for number, shard in enumerate(shards):
        weight_of = np.repeat(weights, [num_pairs for num_pairs, _ in shard.weight_runs])
        for pair, weight in enumerate(weight_of.tolist()):
            counts = [epoch[number, pair] for epoch in epochs]
            assert sum(counts) == weight * NUM_EPOCHS
            assert set(counts) <= {math.floor(weight), math.ceil(weight)}
    assert sum(epoch.total() for epoch in epochs) == NUM_EPOCHS * sum(
        num_pairs * weight for shard in shards for num_pairs, weight in shard.weight_runs
    )


@given(weighted(), st.integers(0, 2**63))
def test_a_run_with_weights_can_resume_anywhere(corpus: Corpus, seed: int) -> None:
    shards, _ = corpus
    whole = list(islice(Sampler(shards, 12, seed).updates(START), 12))
    for done, (position, _) in enumerate(whole[:-1], start=1):
        rest = islice(Sampler(shards, 12, seed).updates(position), len(whole) - done)
        for (_, found), (_, expected) in zip(rest, whole[done:], strict=True):
            assert found.shard == expected.shard
            assert found.pairs.tolist() == expected.pairs.tolist()


def test_weights_of_1_change_nothing() -> None:
    lengths = [(n % 7 + 1, n % 5 + 1) for n in range(100)]
    plain = Sampler([make_shard(lengths)], 30, 1)
    parted = Sampler([weighted_shard([(lengths[:30], 1.0), (lengths[30:], 1.0)])], 30, 1)
    for epoch in range(2):
        expected = [pairs.tolist() for pairs in plain.plan(epoch, 0)]
        assert [pairs.tolist() for pairs in parted.plan(epoch, 0)] == expected


def test_a_random_half_of_a_corpus_is_followed_by_the_other_half() -> None:
    num_pairs = 10_000
    sampler = Sampler([weighted_shard([([(1, 1)] * num_pairs, 0.5)])], 100, 1)
    first, second, third = (np.concatenate(sampler.plan(epoch, 0)) for epoch in range(3))
    assert abs(len(first) - num_pairs / 2) < 5 * (num_pairs / 4) ** 0.5
    assert sorted([*first, *second]) == list(range(num_pairs))
    assert sorted(first) == sorted(third)
    # Not half of the file, and not every second line.
    assert abs(np.mean(first) - num_pairs / 2) < 200
    assert 0.4 < np.mean(np.diff(np.sort(first)) == 1) < 0.6


def test_rare_pairs_are_found_after_many_empty_epochs() -> None:
    sampler = Sampler([make_shard([]), weighted_shard([([(1, 1)], 0.001)])], 5, 1)
    positions = [position.epoch for position, _ in islice(sampler.updates(START), 3)]
    assert [after - before for before, after in pairwise(positions)] == [1000, 1000]


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 0.7])
def test_fractions_do_not_drift(weight: float) -> None:
    num_epochs = 1000
    sampler = Sampler([weighted_shard([([(1, 1)], weight)])], 5, 1)
    count = sum(len(sampler.plan(epoch, 0)) for epoch in range(num_epochs))
    assert count in (math.floor(num_epochs * weight), math.ceil(num_epochs * weight))


@given(weighted(), st.integers(0, 2**63))
def test_an_epoch_visits_all_its_shards_for_any_number_of_first_pairs(
    corpus: Corpus, seed: int
) -> None:
    shards, _ = corpus
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmtkit.data.sampler._FIRST_PAIRS", 1)
        sampler = Sampler(shards, 60, seed)
        for epoch in range(NUM_EPOCHS):
            used = [number for number in range(len(shards)) if sampler.plan(epoch, number)]
            assert sorted(sampler.shard_order(epoch)) == used


# -------------------------------------------------------------------------------- temperature

EPOCHS = 7


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Return three directions with weights 1, 0.5 and 1: of 10, 5 and 3 pairs per epoch."""
    folder = tmp_path_factory.mktemp("directions")
    recipe = tiny_directions(folder)
    one, two, three = recipe.corpus.train
    recipe = with_settings(recipe, train=(one, f"{two}=0.5", three))
    prepared(recipe, folder / "data")
    return Dataset.open(folder / "data")


@given(temperature=st.floats(1, 1000))
def test_shares_are_powers_of_sizes_and_the_epoch_keeps_its_size(
    dataset: Dataset, temperature: float
) -> None:
    found = direction_pairs(with_temperature(dataset, temperature))
    sizes = {"en-de": 10, "en-nl": 5, "nl-en": 3}
    total = sum(size ** (1 / temperature) for size in sizes.values())
    for direction, size in sizes.items():
        assert found[direction] == pytest.approx(18 * size ** (1 / temperature) / total)
    assert epoch_pairs(with_temperature(dataset, temperature)) == pytest.approx(18)


@pytest.mark.parametrize("temperature", [1.0, 5.0, 100.0])
def test_each_pair_occurs_as_often_as_planned_to_one(dataset: Dataset, temperature: float) -> None:
    tempered = with_temperature(dataset, temperature)
    sampler = Sampler(tempered.train, 20, seed=1)
    counts: Counter[int] = Counter()
    for epoch in range(EPOCHS):
        for update in sampler.plan(epoch, 0):
            counts.update(update.tolist())
    (shard,) = tempered.train
    weights = [weight for size, weight in shard.weight_runs for _ in range(size)]
    for pair, weight in enumerate(weights):
        assert abs(counts[pair] - EPOCHS * weight) < 1
    assert epoch_tokens(tempered) > 0


def test_temperature_1_changes_nothing(dataset: Dataset) -> None:
    assert with_temperature(dataset, 1) is dataset
