"""What is read is what the sampler plans, however far ahead, and whatever was read before."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch, gather
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Sampler
from nmtkit.errors import DamagedError
from nmtkit.training.distributed import Ranks
from nmtkit.training.reading import Reader, Reading, useful_workers
from nmtkit.training.segmentation import Segmentation
from nmtkit.training.shares import Shares, SlotIds, SlotStream, Start
from nmtkit.training.slots import Cut, Slot
from tests.tiny import tiny_dataset, tiny_train_recipe

CPU = torch.device("cpu")
BEGIN = Position(0, 0, 0)
WHOLE, CUT, FINER = Cut(1, 1), Cut(2, 1), Cut(2, 2)
TINY = tiny_train_recipe(max_updates=1, dropout=0.0)
# The first update of it has three pairs, the second one seven.
RECIPE = replace(TINY, training=replace(TINY.training, update_tokens=30))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(tiny_dataset(tmp_path_factory.mktemp("corpus")))


def shares(dataset: Dataset, rank: int = 0, num_ranks: int = 1) -> Shares:
    return Shares.of(RECIPE, dataset, rank, num_ranks)


@pytest.fixture(params=[0, 1, 3])
def reader(request: pytest.FixtureRequest, dataset: Dataset) -> Iterator[Reader]:
    with closing(Reader(shares(dataset).slots, CPU, request.param)) as made:
        yield made


def readers() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("reader")]


def assert_equal(batch: Batch, expected: Batch) -> None:
    assert torch.equal(batch.source.values, expected.source.values)
    assert torch.equal(batch.target_in.values, expected.target_in.values)
    assert torch.equal(batch.target_out, expected.target_out)
    for side, other in (
        (batch.source.layout, expected.source.layout),
        (batch.target_in.layout, expected.target_in.layout),
    ):
        assert side.lengths == other.lengths


def taken(dataset: Dataset, found: Reading) -> list[Slot]:
    """Take all slots of an update, whose batches must be of their pairs."""
    slots = []
    for slot, batch in found.slots:
        assert_equal(batch, gather(dataset.train[found.update.shard], slot.pairs, CPU))
        slots.append(slot)
    return slots


def test_updates_come_as_they_are_planned_over_epochs(dataset: Dataset, reader: Reader) -> None:
    position = BEGIN
    sampler = Sampler(dataset.train, RECIPE.training.update_tokens, RECIPE.seed.seed)
    planned = list(islice(sampler.updates(BEGIN), 30))
    assert planned[-1][0].epoch > 1
    for number, (following, update) in enumerate(planned, 1):
        found = reader.read(position, number, CUT)
        assert (found.number, found.position) == (number, following)
        assert found.update.pairs.tolist() == update.pairs.tolist()
        pairs = [pair for slot in taken(dataset, found) for pair in slot.pairs]
        assert sorted(pairs) == sorted(update.pairs.tolist())
        position = following


def test_an_update_that_was_taken_in_part_is_read_again_whole(
    dataset: Dataset, reader: Reader
) -> None:
    first = reader.read(BEGIN, 1, CUT)
    taken(dataset, first)
    position = first.position
    for cut in (CUT, CUT, FINER):
        again = reader.read(position, 2, cut)
        next(again.slots)
    found = reader.read(position, 2, FINER)
    pairs = [pair for slot in taken(dataset, found) for pair in slot.pairs]
    assert sorted(pairs) == sorted(found.update.pairs.tolist())
    assert {slot.piece for slot in taken(dataset, reader.read(position, 2, FINER))} == {0, 1}
    assert reader.read(found.position, 3, WHOLE).update.pairs.tolist() == (
        Reader(shares(dataset).slots, CPU, 0).read(found.position, 3, CUT).update.pairs.tolist()
    )


def test_any_place_can_be_read_at_any_time(dataset: Dataset, reader: Reader) -> None:
    start = Position(1, 0, 1)
    expected = [slot.pairs.tolist() for slot in taken(dataset, reader.read(start, 9, CUT))]
    taken(dataset, reader.read(BEGIN, 1, WHOLE))
    assert [s.pairs.tolist() for s in taken(dataset, reader.read(start, 9, CUT))] == expected


class _Counted:
    """Slots of a reader, counted as they are read; one of them may be an error."""

    def __init__(self, dataset: Dataset, error: Exception | None = None, place: int = 0) -> None:
        self.dataset, self.error, self.place = dataset, error, place
        self.num_read = 0
        self.is_closed = False

    def slots(self, start: Start) -> SlotStream:
        try:
            for ids in shares(self.dataset).slots(start):
                self.num_read += 1
                if self.error and self.num_read == self.place:
                    raise self.error
                yield ids
        finally:
            self.is_closed = True


@pytest.mark.parametrize("num_ahead", [0, 1, 2])
def test_no_more_is_read_ahead_than_asked_for(num_ahead: int, dataset: Dataset) -> None:
    counted = _Counted(dataset)
    with closing(Reader(counted.slots, CPU, num_ahead)) as reader:
        position, num_taken = BEGIN, 0
        for number in range(1, 6):
            found = reader.read(position, number, CUT)
            num_taken += len(taken(dataset, found))
            position = found.position
        assert bool(readers()) == bool(num_ahead)
    assert num_taken <= counted.num_read <= num_taken + num_ahead
    assert counted.is_closed
    assert not readers()


@pytest.mark.parametrize("num_ahead", [0, 2])
@pytest.mark.parametrize("error", [MemoryError("much"), DamagedError("ids: damaged")])
def test_what_fails_is_raised_where_it_is_read_and_can_be_read_again(
    error: Exception, num_ahead: int, dataset: Dataset
) -> None:
    counted = _Counted(dataset, error, place=4)
    with closing(Reader(counted.slots, CPU, num_ahead)) as reader:
        first = reader.read(BEGIN, 1, CUT)
        assert len(taken(dataset, first)) == 2
        second = reader.read(first.position, 2, CUT)
        next(second.slots)
        with pytest.raises(type(error), match=str(error)):
            next(second.slots)
        assert len(taken(dataset, reader.read(first.position, 2, CUT))) == 2
    assert not readers()


def test_each_rank_reads_its_own_and_one_without_takes_part(dataset: Dataset) -> None:
    found = [
        next(iter(Reader(shares(dataset, rank, 3).slots, CPU, 0).read(BEGIN, 1, CUT).slots))[0]
        for rank in range(3)
    ]
    assert [(slot.number, slot.weight, slot.is_last) for slot in found] == [
        (0, 1, True),
        (1, 1, True),
        (0, 0, True),
    ]
    assert len(found[2].pairs) == 1


def test_several_readers_of_every_so_many_slots_read_all(dataset: Dataset) -> None:
    start = Start(BEGIN, 1, CUT)

    def first(slots: SlotStream, count: int) -> list[tuple[int, list[int]]]:
        return [(ids.slot.number, ids.slot.pairs.tolist()) for ids in islice(slots, count)]

    whole = first(shares(dataset).slots(start), 30)
    parts = [first(shares(dataset).slots(start, place, 3), 10) for place in range(3)]
    assert [one for three in zip(*parts, strict=True) for one in three] == whole


def test_text_that_is_cut_anew_for_a_gpu_is_read_by_processes(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Segmentation.of(TrainRecipe(), dataset.codec)
    anew = Segmentation(source=stored.source, target=object(), seed=1, longest=9)  # type: ignore[arg-type]
    gpu = torch.device("cuda", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    for ranks, expected in [(1, 4), (4, 3), (16, 1), (32, 1)]:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
        assert useful_workers(anew, gpu) == expected
        assert useful_workers(anew, CPU) == useful_workers(stored, gpu) == 0


def test_on_a_cpu_nothing_is_read_ahead(dataset: Dataset) -> None:
    with closing(Reader.of(RECIPE, dataset, Ranks(), CPU)) as reader:
        taken(dataset, reader.read(BEGIN, 1, CUT))
        assert not readers()


def test_a_slot_has_the_ids_of_its_pairs(dataset: Dataset) -> None:
    ids: SlotIds = next(shares(dataset).slots(Start(BEGIN, 1, CUT)))
    pairs = dataset.train[ids.update.shard]
    for side, found in ((pairs.source, ids.source), (pairs.target, ids.target)):
        expected = np.concatenate([side[pair] for pair in ids.slot.pairs])
        assert found.ids.tolist() == expected.tolist()
        assert found.lengths.tolist() == [len(side[pair]) for pair in ids.slot.pairs]
