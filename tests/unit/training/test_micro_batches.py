"""Micro-batches divide an update, ranks divide micro-batches, and their number only grows."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.data.sampler import batch_by_length
from nmtkit.errors import DamagedError
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.micro_batches import (
    MicroBatchSchedule,
    fewest_micro_batches,
    micro_batch_seed,
    micro_batches_of_rank,
    pairs_of,
    read_increases,
)
from tests.messages import refuses


@pytest.mark.parametrize(
    ("update_tokens", "max_tokens", "num_ranks", "expected"),
    [
        (25_000, 4096, 1, 7),
        (4096, 4096, 1, 1),
        (4097, 4096, 1, 2),
        (100, 4096, 1, 1),
        (25_000, 4096, 4, 8),
        (100, 4096, 3, 3),
    ],
)
def test_an_update_has_the_micro_batches_that_its_tokens_and_ranks_need(
    update_tokens: int, max_tokens: int, num_ranks: int, expected: int
) -> None:
    assert fewest_micro_batches(update_tokens, max_tokens, num_ranks) == expected


pair_lengths = st.tuples(st.integers(1, 20), st.integers(1, 20))


@given(st.lists(pair_lengths, min_size=1, max_size=60), st.integers(1, 9))
def test_micro_batches_share_an_update_evenly(lengths: list[tuple[int, int]], number: int) -> None:
    source, target = np.array(lengths).T
    (pairs,) = batch_by_length(source, target, 20 * 60)
    parts = [pairs_of(pairs, j, number) for j in micro_batches_of_rank(len(pairs), number, 0, 1)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    assert len(parts) == min(number, len(lengths))
    assert all(len(part) for part in parts)
    tokens = [int(target[part].sum()) for part in parts]
    assert max(tokens) - min(tokens) <= target.max(), "of the sorted side"


@given(st.integers(1, 30), st.integers(1, 36), st.integers(1, 5))
def test_ranks_share_all_micro_batches(num_pairs: int, number: int, num_ranks: int) -> None:
    of_ranks = [
        micro_batches_of_rank(num_pairs, number, rank, num_ranks) for rank in range(num_ranks)
    ]
    whole = micro_batches_of_rank(num_pairs, number, 0, 1)
    assert sorted(j for own in of_ranks for j in own) == list(whole)
    seen = [pair for j in whole for pair in pairs_of(np.arange(num_pairs), j, number).tolist()]
    assert sorted(seen) == list(range(num_pairs))


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 40))
def test_finer_micro_batches_are_parts_of_the_first_ones(
    initial: int, factor: int, num_pairs: int
) -> None:
    """As version 0.1 had it: part p of slot s holds the pairs[s::S][p::P], and has their seed."""
    pairs, number = np.arange(num_pairs), initial * factor
    for j in range(number):
        slot, part = j % initial, j // initial
        assert pairs_of(pairs, j, number).tolist() == pairs[slot::initial][part::factor].tolist()
        if part == 0:
            assert micro_batch_seed(1, 5, j, initial) == micro_batch_seed(1, 5, slot, initial)


def test_seeds_of_runs_that_never_split_stay_what_they_were() -> None:
    assert micro_batch_seed(1, 1, 0, 7) == 767289077112119324
    assert micro_batch_seed(1, 1, 6, 7) == 1991831438379718041
    assert micro_batch_seed(1, 1, 8, 7) == 3496152779115468922


def test_seeds_differ_in_every_part() -> None:
    seeds = {
        micro_batch_seed(seed, update, number, initial=4)
        for seed in range(3)
        for update in range(1, 30)
        for number in range(8)
    }
    assert len(seeds) == 3 * 29 * 8
    assert all(0 <= seed < 2**63 for seed in seeds)


def schedule_of(path: Path, initial: int) -> MicroBatchSchedule:
    run = RunFolder(path)
    return MicroBatchSchedule(run, initial, read_increases(run))


def test_a_schedule_begins_with_the_initial_number(tmp_path: Path) -> None:
    assert schedule_of(tmp_path, 3).at(1) == 3
    assert list(tmp_path.iterdir()) == []


def test_increases_hold_from_their_update_on_and_are_kept_with_the_run(tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path, 3)
    schedule.increase(7, 6, is_writer=True)
    schedule.increase(20, 12, is_writer=True)
    for known in (schedule, schedule_of(tmp_path, 3)):
        assert [known.at(n) for n in (1, 6, 7, 19, 20, 10**6)] == [3, 3, 6, 6, 12, 12]


def test_a_larger_initial_number_is_never_lowered_by_an_earlier_increase(tmp_path: Path) -> None:
    """As after a restart before the first checkpoint, with a smaller --max-tokens."""
    schedule_of(tmp_path, 2).increase(5, 4, is_writer=True)
    assert [schedule_of(tmp_path, 6).at(n) for n in (1, 5, 9)] == [6, 6, 6]


def test_a_rank_that_does_not_write_has_the_increase_too(tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path, 3)
    schedule.increase(7, 6, is_writer=False)
    assert schedule.at(7) == 6
    assert schedule_of(tmp_path, 3).at(7) == 3


@pytest.mark.parametrize("content", ["{", "[1]", '[{"micro_batches": 2}]', '{"from_update": 1}'])
def test_a_file_with_something_else_is_damaged(content: str, tmp_path: Path) -> None:
    (tmp_path / "micro_batches.json").write_text(content, encoding="utf-8")
    with refuses(DamagedError, "micro_batches.json"):
        schedule_of(tmp_path, 1)


def test_a_pipe_is_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "micro_batches.json")
    with refuses(DamagedError, "micro_batches.json"):
        schedule_of(tmp_path, 1)
