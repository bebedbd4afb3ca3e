"""Shares of directions by temperature."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import (
    Sampler,
    direction_pairs,
    epoch_pairs,
    epoch_tokens,
    with_temperature,
)
from tests.tiny import prepared, tiny_directions

EPOCHS = 7


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Return three directions with weights 1, 0.5 and 1: of 10, 5 and 3 pairs per epoch."""
    folder = tmp_path_factory.mktemp("directions")
    recipe = tiny_directions(folder)
    one, two, three = recipe.corpus.train
    corpus = replace(recipe.corpus, train=(one, f"{two}=0.5", three))
    prepared(replace(recipe, corpus=corpus), folder / "data")
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
