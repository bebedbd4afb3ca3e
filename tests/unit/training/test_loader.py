"""The loader returns the updates of the sampler, read ahead or not."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import torch

from nmtkit.data.batch import Batch, gather
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Sampler
from nmtkit.errors import DamagedError
from nmtkit.training.distributed import Ranks
from nmtkit.training.loader import BatchLoader, LoadedUpdate, default_num_workers
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.update_reader import UpdateReader, UpdateStream
from tests.ranks import from_launcher
from tests.tiny import tiny_train_recipe

CPU = torch.device("cpu")
BEGIN = Position(0, 0, 0)
TINY = tiny_train_recipe(max_updates=1, dropout=0.0)
# The first update of it has three pairs, the second one seven.
RECIPE = replace(TINY, training=replace(TINY.training, update_tokens=30))


def loader_of(dataset: Dataset, num_ahead: int = 0, rank: int = 0, size: int = 1) -> BatchLoader:
    reader = UpdateReader.of(RECIPE, dataset, rank, size)
    return BatchLoader(reader.updates, CPU, num_ahead)


@pytest.fixture(params=[0, 1, 3])
def loader(request: pytest.FixtureRequest, dataset: Dataset) -> Iterator[BatchLoader]:
    with closing(loader_of(dataset, request.param)) as made:
        yield made


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("loader")]


def assert_equal(batch: Batch, expected: Batch) -> None:
    assert torch.equal(batch.source.values, expected.source.values)
    assert torch.equal(batch.target_in.values, expected.target_in.values)
    assert torch.equal(batch.target_out, expected.target_out)
    for side, other in (
        (batch.source.layout, expected.source.layout),
        (batch.target_in.layout, expected.target_in.layout),
    ):
        assert side.lengths == other.lengths


def pairs_in(dataset: Dataset, loaded: LoadedUpdate, number: int) -> list[list[int]]:
    """Return the pairs of each micro-batch; check its batch."""
    found = []
    for micro_batch in loaded.micro_batches:
        pairs = pairs_of(loaded.update.pairs, micro_batch.number, number)
        assert_equal(micro_batch.pairs, gather(dataset.train[loaded.update.shard], pairs, CPU))
        assert micro_batch.weight == 1
        found.append(pairs.tolist())
    return found


def test_updates_come_as_they_are_planned_over_epochs(
    dataset: Dataset, loader: BatchLoader
) -> None:
    position = BEGIN
    sampler = Sampler(dataset.train, RECIPE.training.update_tokens, RECIPE.seed.seed)
    planned = list(islice(sampler.updates(BEGIN), 30))
    assert planned[-1][0].epoch > 1
    for number, (following, update) in enumerate(planned, 1):
        loaded = loader.load(position, number, 2)
        assert loaded.next_position == following
        assert loaded.update.pairs.tolist() == update.pairs.tolist()
        pairs = [pair for part in pairs_in(dataset, loaded, 2) for pair in part]
        assert sorted(pairs) == sorted(update.pairs.tolist())
        assert loaded.num_tokens == (update.num_source_tokens, update.num_target_tokens)
        position = following


def test_an_update_is_loaded_again_in_more_micro_batches(
    dataset: Dataset, loader: BatchLoader
) -> None:
    first = loader.load(BEGIN, 1, 2)
    for number in (2, 2, 4, 4):
        second = loader.load(first.next_position, 2, number)
        parts = pairs_in(dataset, second, number)
        assert len(parts) == number
        assert sorted(pair for part in parts for pair in part) == sorted(
            second.update.pairs.tolist()
        )
    third, expected = (one.load(second.next_position, 3, 1) for one in (loader, loader_of(dataset)))
    assert third.update.pairs.tolist() == expected.update.pairs.tolist()


def test_any_place_can_be_loaded_at_any_time(dataset: Dataset, loader: BatchLoader) -> None:
    start = Position(1, 0, 1)
    expected = pairs_in(dataset, loader.load(start, 9, 2), 2)
    loader.load(BEGIN, 1, 1)
    assert pairs_in(dataset, loader.load(start, 9, 2), 2) == expected


class _Counted:
    """A stream of updates that counts reads; one read may raise an error."""

    def __init__(self, dataset: Dataset, error: Exception | None = None, place: int = 0) -> None:
        self.dataset, self.error, self.place = dataset, error, place
        self.num_read = 0
        self.is_closed = False

    def updates(self, *where: Any) -> UpdateStream:
        try:
            for update in UpdateReader.of(RECIPE, self.dataset, 0, 1).updates(*where):
                self.num_read += 1
                if self.error and self.num_read == self.place:
                    raise self.error
                yield update
        finally:
            self.is_closed = True


@pytest.mark.parametrize("num_ahead", [0, 1, 2])
def test_no_more_is_read_ahead_than_asked_for(num_ahead: int, dataset: Dataset) -> None:
    counted = _Counted(dataset)
    with closing(BatchLoader(counted.updates, CPU, num_ahead)) as loader:
        position = BEGIN
        for number in range(1, 6):
            position = loader.load(position, number, 2).next_position
        assert bool(threads()) == bool(num_ahead)
    assert 5 <= counted.num_read <= 5 + num_ahead
    assert counted.is_closed
    assert not threads()


@pytest.mark.parametrize("num_ahead", [0, 2])
@pytest.mark.parametrize("error", [MemoryError("much"), DamagedError("ids: damaged")])
def test_an_update_that_fails_to_load_raises_there_and_can_be_loaded_again(
    error: Exception, num_ahead: int, dataset: Dataset
) -> None:
    counted = _Counted(dataset, error, place=2)
    with closing(BatchLoader(counted.updates, CPU, num_ahead)) as loader:
        first = loader.load(BEGIN, 1, 2)
        assert len(first.micro_batches) == 2
        with pytest.raises(type(error), match=str(error)):
            loader.load(first.next_position, 2, 2)
        assert len(loader.load(first.next_position, 2, 2).micro_batches) == 2
    assert not threads()


def test_each_rank_loads_its_micro_batches_and_one_without_takes_part(dataset: Dataset) -> None:
    of_ranks = [loader_of(dataset, rank=rank, size=3).load(BEGIN, 1, 2) for rank in range(3)]
    (first,), (second,), (third,) = (one.micro_batches for one in of_ranks)
    assert [(one.number, one.weight) for one in (first, second, third)] == [(0, 1), (1, 1), (0, 0)]
    shard, pairs = dataset.train[of_ranks[0].update.shard], of_ranks[0].update.pairs
    assert_equal(first.pairs, gather(shard, pairs[0::2], CPU))
    assert_equal(second.pairs, gather(shard, pairs[1::2], CPU))
    assert_equal(third.pairs, gather(shard, pairs[:1], CPU))
    assert of_ranks[2].num_tokens == (0, 0)


def test_text_that_is_segmented_for_a_gpu_is_read_by_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = torch.device("cuda", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    for ranks, expected in [(1, 4), (4, 3), (16, 1), (32, 1)]:
        for name, value in from_launcher(LOCAL_WORLD_SIZE=str(ranks)).items():
            monkeypatch.setenv(name, value)
        assert default_num_workers(gpu, segments_text=True) == expected
        assert default_num_workers(CPU, segments_text=True) == 0
        assert default_num_workers(gpu, segments_text=False) == 0


def test_on_a_cpu_nothing_is_read_ahead(dataset: Dataset) -> None:
    with closing(BatchLoader.of(RECIPE, dataset, Ranks(), CPU)) as loader:
        loader.load(BEGIN, 1, 2)
        assert not threads()
