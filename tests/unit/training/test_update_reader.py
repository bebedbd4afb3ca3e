"""Ids of micro-batches are those of their pairs, whichever process reads them."""

from itertools import islice

import numpy as np
import pytest

from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position
from nmtkit.training.micro_batches import pairs_of
from nmtkit.training.update_reader import UpdateIds, UpdateReader
from tests.tiny import tiny_train_recipe

BEGIN = (Position(0, 0, 0), 1, 2)


@pytest.fixture
def reader(dataset: Dataset) -> UpdateReader:
    return UpdateReader.of(tiny_train_recipe(max_updates=1, dropout=0.0), dataset, 0, 1)


def test_a_micro_batch_has_the_ids_of_its_pairs(dataset: Dataset, reader: UpdateReader) -> None:
    _, update, parts = next(reader.updates(*BEGIN))
    shard = dataset.train[update.shard]
    assert len(parts) == 2
    for j, part in enumerate(parts):
        assert (part.number, part.weight) == (j, 1)
        pairs = pairs_of(update.pairs, j, 2)
        for side, found in zip((shard.source, shard.target), part.pairs, strict=True):
            assert found.ids.tolist() == np.concatenate([side[pair] for pair in pairs]).tolist()
            assert found.lengths.tolist() == [len(side[pair]) for pair in pairs]


def test_workers_that_read_every_third_update_read_all(reader: UpdateReader) -> None:
    def described(update: UpdateIds) -> tuple[Position, list[int], list[list[int]]]:
        position, planned, parts = update
        return position, planned.pairs.tolist(), [part.pairs[0].ids.tolist() for part in parts]

    whole = [described(one) for one in islice(reader.updates(*BEGIN), 30)]
    workers = [islice(reader.updates(*BEGIN, worker, 3), 10) for worker in range(3)]
    assert [described(one) for three in zip(*workers, strict=True) for one in three] == whole
