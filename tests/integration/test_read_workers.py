"""--read-workers does not change a run; errors are reported, and no process is left behind."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.binary import Dataset
from nmtkit.data.prepare import Sizes
from nmtkit.data.sampler import Position
from nmtkit.errors import DamagedError, ResourceError, StoppedError
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training import trainer
from nmtkit.training.distributed import Ranks
from nmtkit.training.micro_batches import micro_batch_seed
from nmtkit.training.run import make_loader, train
from nmtkit.training.updates import Start, UpdateLoader
from tests.messages import refuses
from tests.processes import workers_as_forks
from tests.snapshots import read_tensors
from tests.tiny import tiny_subword_dataset, tiny_train_recipe

CPU = torch.device("cpu")
BEGIN = Start(Position(0, 0, 0), 1, 2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tiny_subword_dataset(tmp_path)


@pytest.fixture(autouse=True, scope="module")
def _workers_are_forks() -> Iterator[None]:
    with workers_as_forks():
        yield


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    assert not multiprocessing.active_children()


def recipe_with(read_workers: int, max_updates: int = 6) -> TrainRecipe:
    recipe = tiny_train_recipe(max_updates, dropout=0.1)
    training = replace(
        recipe.training,
        subword_sampling="both",
        subword_alpha=0.5,
        noise="join-lines=0.5,typo=0.5",
    )
    engine = replace(recipe.engine, read_workers=read_workers)
    return replace(recipe, training=training, engine=engine)


def loader_of(data: Path, read_workers: int) -> UpdateLoader:
    return make_loader(recipe_with(read_workers), Dataset.open(data), Ranks(), CPU)


def ids_of(loader: UpdateLoader, num_updates: int) -> list[list[int]]:
    start, found = BEGIN, []
    for _ in range(num_updates):
        loaded = loader.load(start)
        for batch in loaded.micro_batches.values():
            found += [batch.source.values.tolist(), batch.target_out.tolist()]
        start = loaded.following
    return found


def read_on(loader: UpdateLoader, start: Start, num_updates: int) -> Start:
    for _ in range(num_updates):
        start = loader.load(start).following
    return start


def test_several_read_workers_read_the_same_as_one(data: Path) -> None:
    with closing(loader_of(data, 0)) as alone, closing(loader_of(data, 3)) as shared:
        assert ids_of(shared, 12) == ids_of(alone, 12)


def test_a_run_is_the_same_with_any_number_of_read_workers(data: Path, tmp_path: Path) -> None:
    train(recipe_with(0), data, tmp_path / "alone")
    train(recipe_with(1, max_updates=3), data, tmp_path / "shared")
    train(recipe_with(2), data, tmp_path / "shared")
    runs = []
    for name in ("alone", "shared"):
        folder = RunFolder(tmp_path / name).last()
        assert folder is not None
        runs.append(read_tensors(folder))
    assert all(torch.equal(tensor, runs[1][name]) for name, tensor in runs[0].items())


def test_a_stop_signal_to_all_processes_stops_the_run(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_all(seed: int, update: int, number: int, initial: int) -> int:
        if update == 3:
            for child in multiprocessing.active_children():
                os.kill(child.pid or 0, signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        return micro_batch_seed(seed, update, number, initial)

    monkeypatch.setattr(trainer, "micro_batch_seed", stop_all)
    with refuses(StoppedError, "SIGTERM update 2"):
        train(recipe_with(1), data, tmp_path / "run")


def test_a_killed_read_worker_ends_the_run(data: Path) -> None:
    with closing(loader_of(data, 1)) as loader:
        begun = read_on(loader, BEGIN, 1)
        (child,) = multiprocessing.active_children()
        child.kill()
        with refuses(ResourceError, "worker -9; --read-workers"):
            read_on(loader, begun, 10_000)  # what is in the pipe still comes


def test_damage_found_by_a_read_worker_is_reported(data: Path) -> None:
    dataset = Dataset.open(data)
    path = data / "train.00000.source.ids"
    path.write_bytes(bytes(path.stat().st_size))
    loader = make_loader(recipe_with(2), dataset, Ranks(), CPU)
    with closing(loader), refuses(DamagedError, "train.00000.source.ids"):
        loader.load(BEGIN)


@pytest.mark.parametrize("read_workers", [0, 2])
def test_removed_shards_are_reported_with_and_without_read_workers(
    read_workers: int, tmp_path: Path
) -> None:
    data = tiny_subword_dataset(tmp_path, Sizes(shard=4))
    with closing(loader_of(data, read_workers)) as loader:
        begun = read_on(loader, BEGIN, 3)  # by then all have opened the dataset
        for path in data.glob("train.*.offsets"):
            path.unlink()
        with refuses(DamagedError, data, recorded=False):
            read_on(loader, begun, 10_000)  # what is mapped is still there
