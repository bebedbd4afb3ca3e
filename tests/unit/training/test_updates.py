"""The loader returns the updates of the sampler, read ahead or not, by any process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest
import torch

from nmtkit.data.batch import Batch, gather, make_batch
from nmtkit.data.binary import Dataset, PairIds
from nmtkit.data.sampler import Position, Sampler
from nmtkit.errors import DamagedError
from nmtkit.runtime.devices import background_thread
from nmtkit.training.distributed import Ranks
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.run import make_loader
from nmtkit.training.updates import (
    LoadedUpdate,
    Start,
    UpdateLoader,
    UpdateReader,
    UpdateStream,
    default_num_workers,
    open_updates,
)
from tests.ranks import from_launcher
from tests.tiny import tiny_train_recipe, with_settings

CPU = torch.device("cpu")
BEGIN = Start(Position(0, 0, 0), 1, 2)
# The first update of it has three pairs, the second one seven.
RECIPE = tiny_train_recipe(max_updates=1, dropout=0.0, update_tokens=30)


def loader_of(
    dataset: Dataset, is_ahead: bool = False, rank: int = 0, size: int = 1
) -> UpdateLoader:
    return loader_from(UpdateReader.of(RECIPE, dataset, rank, size).updates, is_ahead)


def loader_from(open_stream: Callable[[Start], UpdateStream], is_ahead: bool) -> UpdateLoader:
    background = background_thread("loader") if is_ahead else None
    return UpdateLoader(open_stream, partial(make_batch, device=CPU), background)


@pytest.fixture(params=[False, True])
def loader(request: pytest.FixtureRequest, dataset: Dataset) -> Iterator[UpdateLoader]:
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


def pairs_in(dataset: Dataset, loaded: LoadedUpdate[Batch]) -> list[list[int]]:
    """Return the pairs of each micro-batch; check its batch."""
    found = []
    for j, batch in loaded.micro_batches.items():
        pairs = pairs_of(loaded.update.pairs, j, loaded.following.num_micro_batches)
        assert_equal(batch, gather(dataset.train[loaded.update.shard], pairs, CPU))
        found.append(pairs.tolist())
    return found


def test_updates_come_as_they_are_planned_over_epochs(
    dataset: Dataset, loader: UpdateLoader
) -> None:
    start = BEGIN
    sampler = Sampler(dataset.train, RECIPE.training.update_tokens, RECIPE.seed.seed)
    planned = list(islice(sampler.updates(BEGIN.position), 30))
    assert planned[-1][0].epoch > 1
    for number, (position, update) in enumerate(planned, 1):
        loaded = loader.load(start)
        assert loaded.following == Start(position, number + 1, 2)
        assert loaded.update.pairs.tolist() == update.pairs.tolist()
        pairs = [pair for part in pairs_in(dataset, loaded) for pair in part]
        assert sorted(pairs) == sorted(update.pairs.tolist())
        sizes = zip(*(batch.sizes for batch in loaded.micro_batches.values()), strict=True)
        assert [*map(sum, sizes)] == [update.num_source_tokens, update.num_target_tokens]
        start = loaded.following


def test_an_update_is_loaded_again_in_more_micro_batches(
    dataset: Dataset, loader: UpdateLoader
) -> None:
    first = loader.load(BEGIN)
    for number in (2, 2, 4, 4):
        second = loader.load(replace(first.following, num_micro_batches=number))
        parts = pairs_in(dataset, second)
        assert len(parts) == number
        assert sorted(pair for part in parts for pair in part) == sorted(
            second.update.pairs.tolist()
        )
    third, expected = (one.load(second.following) for one in (loader, loader_of(dataset)))
    assert third.update.pairs.tolist() == expected.update.pairs.tolist()


def test_any_place_can_be_loaded_at_any_time(dataset: Dataset, loader: UpdateLoader) -> None:
    start = Start(Position(1, 0, 1), 9, 2)
    expected = pairs_in(dataset, loader.load(start))
    loader.load(replace(BEGIN, num_micro_batches=1))
    assert pairs_in(dataset, loader.load(start)) == expected


class _Counted:
    """A stream of updates that counts reads; one read may raise an error."""

    def __init__(self, dataset: Dataset, error: Exception | None = None, place: int = 0) -> None:
        self.dataset, self.error, self.place = dataset, error, place
        self.num_read = 0
        self.is_closed = False

    def updates(self, start: Start) -> UpdateStream:
        try:
            for update in UpdateReader.of(RECIPE, self.dataset, 0, 1).updates(start):
                self.num_read += 1
                if self.error and self.num_read == self.place:
                    raise self.error
                yield update
        finally:
            self.is_closed = True


@pytest.mark.parametrize("is_ahead", [False, True])
def test_two_updates_are_read_ahead_or_none(is_ahead: bool, dataset: Dataset) -> None:
    counted, start = _Counted(dataset), BEGIN
    with closing(loader_from(counted.updates, is_ahead)) as loader:
        for _ in range(5):
            start = loader.load(start).following
        assert bool(threads()) == is_ahead
    assert 5 <= counted.num_read <= 5 + 2 * is_ahead
    assert counted.is_closed
    assert not threads()


@pytest.mark.parametrize("is_ahead", [False, True])
@pytest.mark.parametrize("error", [MemoryError("much"), DamagedError("ids: damaged")])
def test_an_update_that_fails_to_load_raises_there_and_can_be_loaded_again(
    error: Exception, is_ahead: bool, dataset: Dataset
) -> None:
    counted = _Counted(dataset, error, place=2)
    with closing(loader_from(counted.updates, is_ahead)) as loader:
        first = loader.load(BEGIN)
        assert len(first.micro_batches) == 2
        with pytest.raises(type(error), match=str(error)):
            loader.load(first.following)
        assert len(loader.load(first.following).micro_batches) == 2
    assert not threads()


def test_each_rank_loads_its_micro_batches_and_one_may_have_none(dataset: Dataset) -> None:
    of_ranks = [loader_of(dataset, rank=rank, size=3).load(BEGIN) for rank in range(3)]
    assert [list(one.micro_batches) for one in of_ranks] == [[0], [1], []]
    shard, pairs = dataset.train[of_ranks[0].update.shard], of_ranks[0].update.pairs
    assert_equal(of_ranks[0].micro_batches[0], gather(shard, pairs[0::2], CPU))
    assert_equal(of_ranks[1].micro_batches[1], gather(shard, pairs[1::2], CPU))


def test_workers_that_read_every_third_update_read_all(dataset: Dataset) -> None:
    def described(
        loaded: LoadedUpdate[PairIds],
    ) -> tuple[Start, list[int], dict[int, list[int]]]:
        ids = {j: pairs.source.ids.tolist() for j, pairs in loaded.micro_batches.items()}
        return loaded.following, loaded.update.pairs.tolist(), ids

    reader = UpdateReader.of(RECIPE, dataset, 0, 1)
    whole = [described(one) for one in islice(reader.updates(BEGIN), 30)]
    workers = [islice(reader.updates(BEGIN, worker, 3), 10) for worker in range(3)]
    assert [described(one) for three in zip(*workers, strict=True) for one in three] == whole


def test_text_that_is_segmented_for_a_gpu_is_read_by_processes(
    subword_dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    for ranks, expected in [(1, 4), (4, 3), (16, 1), (32, 1)]:
        for name, value in from_launcher(LOCAL_WORLD_SIZE=str(ranks)).items():
            monkeypatch.setenv(name, value)
        assert default_num_workers() == expected
    sampled = with_settings(RECIPE, subword_sampling="both")
    for recipe, device_type, is_ahead in [
        (RECIPE, "cpu", False),
        (RECIPE, "cuda", True),
        (sampled, "cpu", False),
        (sampled, "cuda", True),
    ]:
        open_stream, found = open_updates(recipe, subword_dataset, 0, 1, device_type)
        is_by_processes = not hasattr(open_stream, "__self__")  # else the reader's own
        assert (found, is_by_processes) == (is_ahead, is_ahead and recipe is sampled)


def test_on_a_cpu_nothing_is_read_ahead(dataset: Dataset) -> None:
    with closing(make_loader(RECIPE, dataset, Ranks(), CPU)) as loader:
        loader.load(BEGIN)
        assert not threads()
