"""A failure of one rank is reported once, with its reason, and ends all ranks."""

import math
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmtkit.data.batch import Batch
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import ValidationRecord
from nmtkit.training import distributed, run
from nmtkit.training.run import train
from nmtkit.training.state import TrainState
from nmtkit.training.trainer import Trainer
from nmtkit.training.updates import LoadedUpdate, Start, UpdateLoader
from tests.ranks import DONE, RankEnd, once, recipe_of, run_ranks, stop_after_saving, train_on
from tests.tiny import TRAIN_LINES, prepared, tiny_corpus, tiny_dataset, tiny_recipe
from tests.training import with_updates


def test_a_rank_that_is_merely_late_is_not_called_lost(data: Path, tmp_path: Path) -> None:
    """A rank that reached the exchange later times out later, so it cannot answer yet."""
    vars(distributed)["ROLL_CALL_S"], kept = 0.5, distributed.ROLL_CALL_S
    recipe = recipe_of(dropout=0.1, micro_batches=3)
    recipe = replace(recipe, ranks=replace(recipe.ranks, rank_timeout=3 / 60))

    def hang(rank: int, update: int) -> None:
        if update == 6:
            time.sleep({0: 2, 1: 0, 2: 10}[rank])

    try:
        ends = train_on(3, recipe, data, tmp_path, hook=once(hang))
    finally:
        vars(distributed)["ROLL_CALL_S"] = kept
    assert [end.exit_code for end in ends[:2]] == [7, 7]
    assert "rank 2 was lost in update 6" in ends[0].message
    assert ends[1].message == ""


def test_a_rank_that_hangs_while_it_loads_is_named_alone(data: Path, tmp_path: Path) -> None:
    vars(distributed)["ROLL_CALL_S"], kept = 0.5, distributed.ROLL_CALL_S
    load, recipe = UpdateLoader.load, recipe_of(dropout=0.1, micro_batches=3)
    recipe = replace(recipe, ranks=replace(recipe.ranks, rank_timeout=3 / 60))

    def load_late(self: UpdateLoader, start: Start) -> LoadedUpdate[Batch]:
        if start.number == 6:
            time.sleep({0: 2, 1: 0, 2: 10}[int(os.environ["RANK"])])
        return load(self, start)

    def work(_rank: int) -> None:
        UpdateLoader.load = load_late  # type: ignore[method-assign]
        train(recipe, data, tmp_path)

    try:
        ends = run_ranks(3, work)
    finally:
        vars(distributed)["ROLL_CALL_S"] = kept
    assert [end.exit_code for end in ends[:2]] == [7, 7]
    assert "rank 2 was lost in update 6" in ends[0].message
    assert ends[1].message == ""


def test_a_rank_that_dies_before_the_first_update_is_named(data: Path, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        if rank == 1:
            distributed.Ranks.wrap = lambda *_: os._exit(9)  # type: ignore[method-assign]
        train(recipe_of(dropout=0.1, micro_batches=2), data, tmp_path)

    first, _ = run_ranks(2, work)
    assert first.exit_code == 7
    assert "rank 1 was lost between two updates" in first.message


@pytest.mark.parametrize("is_validation", [False, True])
def test_ranks_with_other_datasets_are_refused(
    is_validation: bool, data: Path, tmp_path: Path
) -> None:
    if is_validation:
        train_text, _ = tiny_corpus(tmp_path)
        other = tmp_path / "other"
        prepared(tiny_recipe(train_text, train_text), other)
    else:
        other = tiny_dataset(tmp_path, [*TRAIN_LINES[::-1], "a b"])

    def work(rank: int) -> None:
        train(recipe_of(dropout=0.1, micro_batches=2), other if rank else data, tmp_path / "run")

    first, second = run_ranks(2, work)
    assert (first, second.exit_code) == (RankEnd(4, ""), 4)
    assert (
        "rank 1 reads another dataset than rank 0; give all ranks the same data" in second.message
    )


def test_ranks_with_other_folders_are_refused_at_the_start(data: Path, tmp_path: Path) -> None:
    vars(run)["SHARED_FOLDER_S"], kept = 0.5, run.SHARED_FOLDER_S

    def work(rank: int) -> None:
        train(recipe_of(dropout=0.1, micro_batches=2), data, tmp_path / f"run{rank}")

    try:
        first, second = run_ranks(2, work)
    finally:
        vars(run)["SHARED_FOLDER_S"] = kept
    assert (first, second.exit_code) == (RankEnd(2, ""), 2)
    assert f"{tmp_path}/run1: not the folder that rank 0 has made; give --out" in second.message


def test_a_rank_with_another_log_is_refused(data: Path, tmp_path: Path) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=2, max_updates=12)
    assert train_on(2, recipe, data, tmp_path) == [DONE] * 2
    validations = MetricsLog.validations

    def all_but_the_last(self: MetricsLog) -> list[ValidationRecord]:
        return validations(self)[:-1]

    def work(rank: int) -> None:
        if rank == 1:
            MetricsLog.validations = all_but_the_last  # type: ignore[method-assign]
        train(with_updates(recipe, 20), data, tmp_path)

    first, second = run_ranks(2, work)
    assert (first, second.exit_code) == (RankEnd(4, ""), 4)
    assert "rank 1 reads another log than rank 0" in second.message


def test_weights_that_are_finite_on_no_rank_have_diverged(data: Path, tmp_path: Path) -> None:
    step = TrainState.step

    def step_and_ruin(self: TrainState, learning_rate: float, is_skipped: Tensor) -> None:
        step(self, learning_rate, is_skipped)
        if self.progress.update == 5:
            next(self.model.parameters()).data.fill_(math.nan)

    def work(_rank: int) -> None:
        TrainState.step = step_and_ruin  # type: ignore[method-assign]
        train(recipe_of(dropout=0.1, micro_batches=2), data, tmp_path)

    first, second = run_ranks(2, work)
    assert (first.exit_code, second) == (6, RankEnd(6, ""))
    assert "training diverged: the weights are not finite after update 5" in first.message


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("early", [None, 0, 1])
def test_ranks_that_read_results_at_different_points_diverge_together(
    early: int | None, data: Path, tmp_path: Path
) -> None:
    after_update = Trainer._after_update

    def read_early(self: Trainer) -> None:
        self.read_results()  # as a live display does, on rank 0
        after_update(self)

    def work(rank: int) -> None:
        vars(torch.nn.utils)["get_total_norm"] = lambda *_, **__: torch.tensor(math.inf)
        if rank == early:
            Trainer._after_update = read_early  # type: ignore[method-assign]
        recipe = recipe_of(dropout=0.1, micro_batches=2)
        recipe = replace(recipe, logging=replace(recipe.logging, log_every=100))
        recipe = replace(recipe, checkpoints=replace(recipe.checkpoints, save_every=100))
        recipe = replace(recipe, validation=replace(recipe.validation, validate_every=0))
        train(recipe, data, tmp_path)

    first, second = run_ranks(2, work)
    assert (first.exit_code, second) == (6, RankEnd(6, ""))
    assert "20 updates in a row, up to update 20, are not finite" in first.message


def test_a_rank_out_of_memory_in_the_optimizer_ends_the_others(data: Path, tmp_path: Path) -> None:
    def run_out(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("no room")

    def work(rank: int) -> None:
        if rank == 1:
            TrainState.step = run_out  # type: ignore[method-assign]
        train(recipe_of(dropout=0.1, micro_batches=2), data, tmp_path)

    first, second = run_ranks(2, work)
    assert (first, second.exit_code) == (RankEnd(5, ""), 5)
    assert "out of memory; use a smaller --max-tokens" in second.message


def test_stopped_ranks_leave_in_order(data: Path, tmp_path: Path) -> None:
    leave = distributed.Ranks.leave

    def leave_and_note(self: distributed.Ranks) -> None:
        leave(self)
        (tmp_path / f"left-{self.rank}").touch()

    def work(_rank: int) -> None:
        distributed.Ranks.leave = leave_and_note  # type: ignore[method-assign]
        stop_after_saving()
        train(recipe_of(dropout=0.1, micro_batches=2, max_updates=2), data, tmp_path / "run")

    assert [end.exit_code for end in run_ranks(2, work)] == [75, 75]
    assert {path.name for path in tmp_path.glob("left-*")} == {"left-0", "left-1"}
