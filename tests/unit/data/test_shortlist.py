"""Candidates equal those counted by hand, for any size of slices and buffers."""

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmtkit.data import shortlist
from nmtkit.data.binary import Dataset
from nmtkit.data.shortlist import FORMAT, VERSION, Shortlist
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.storage.durable import new_folder
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from tests.faults.harness import Fault, run_in_child
from tests.folders import limit_file_size, names_in
from tests.messages import refuses
from tests.tiny import WORDS, tiny_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(300)]
    return Dataset.open(tiny_dataset(tmp_path_factory.mktemp("corpus"), lines))


def by_hand(
    dataset: Dataset, indices: list[int]
) -> tuple[Counter[tuple[int, int]], Counter[int], Counter[int]]:
    together: Counter[tuple[int, int]] = Counter()
    sources: Counter[int] = Counter()
    targets: Counter[int] = Counter()
    (pairs,) = dataset.train
    for index in indices:
        source, target = set(pairs.source[index].tolist()), set(pairs.target[index].tolist())
        sources.update(source)
        targets.update(target)
        together.update((s, t) for s in source for t in target)
    return together, sources, targets


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
@pytest.mark.parametrize("max_pairs", [20, 300])
def test_candidates_equal_those_counted_by_hand(
    max_pairs: int, at_once: int, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, step = min(at_once, max_pairs), math.ceil(300 / max_pairs)
    counted = [index for index in range(300) if index // size % step == 0]
    assert len(counted) < max_pairs + size
    together, sources, targets = by_hand(dataset, counted)
    monkeypatch.setattr(shortlist, "PAIRS_AT_ONCE", at_once)
    monkeypatch.setattr(shortlist, "COUNTS_AT_ONCE", 50 * at_once)
    learnt = Shortlist.learn(dataset, 3, 4, max_pairs)
    assert learnt.candidates.shape == (dataset.codec.source.size, 3)
    for source in range(dataset.codec.source.size):
        shares = {
            target: count**2 / (sources[source] * targets[target])
            for (one, target), count in together.items()
            if one == source
        }
        expected = sorted(shares.values(), reverse=True)[:3]
        found = [shares[target] for target in learnt.candidates[source].tolist() if shares]
        assert found == pytest.approx(expected)
    least = sorted(targets.values())[-4]
    frequent = set(learnt.frequent.tolist())
    assert {UNK_ID, BOS_ID, EOS_ID} <= frequent
    assert {target for target in targets if targets[target] > least} <= frequent
    assert len(frequent - {UNK_ID, BOS_ID, EOS_ID}) <= 4


def test_a_loaded_shortlist_equals_the_saved_one(dataset: Dataset, tmp_path: Path) -> None:
    learnt = Shortlist.learn(dataset, num_candidates=3, num_frequent=4, max_pairs=300)
    learnt.save(tmp_path / "list", overwrite=False)
    read = Shortlist.load(tmp_path / "list")
    assert np.array_equal(read.candidates, learnt.candidates)
    assert np.array_equal(read.frequent, learnt.frequent)
    assert (read.size, read.codec) == (learnt.size, learnt.codec)
    with refuses(ConfigError, "list; --overwrite"):
        learnt.save(tmp_path / "list", overwrite=False)


def test_a_damaged_shortlist_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    learnt = Shortlist.learn(dataset, num_candidates=3, num_frequent=4, max_pairs=300)
    learnt.save(tmp_path / "list", overwrite=False)
    with (tmp_path / "list" / "candidates.ids").open("r+b") as stream:
        stream.write(b"\xff")
    with refuses(DamagedError, "candidates.ids"):
        Shortlist.load(tmp_path / "list")


@pytest.mark.parametrize("number", [2, 10**12])
def test_candidates_that_are_no_rows_are_refused(number: int, tmp_path: Path) -> None:
    with new_folder(tmp_path / "list", FORMAT, VERSION, overwrite=False) as staged:
        (staged.path / "candidates.ids").write_bytes(bytes(12))
        staged.fields.update(codec="", size=9, frequent=[0], num_candidates=number)
    with refuses(DamagedError, f"candidates.ids {number}"):
        Shortlist.load(tmp_path / "list")


def test_a_shortlist_that_does_not_fit_on_the_disk_is_an_error(
    dataset: Dataset, tmp_path: Path
) -> None:
    shortlist = Shortlist.learn(dataset, 3, 4, 300)
    shortlist = replace(shortlist, candidates=np.zeros((1000, 3), np.int64))  # 12 000 bytes

    def save_on_a_full_disk() -> None:
        limit_file_size(11_999)
        shortlist.save(tmp_path / "shortlist", overwrite=False)

    outcome = run_in_child(save_on_a_full_disk, Fault("count", 0))
    assert outcome.exception.startswith(f"ResourceError: {tmp_path}/shortlist: File too large")
    assert names_in(tmp_path) == []
