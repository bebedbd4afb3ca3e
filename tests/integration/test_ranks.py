"""A run is the same on any number of ranks, and an end of one rank ends all."""

import json
import math
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmtkit.data.batch import Batch
from nmtkit.errors import ConfigError, LostRankError, ResourceError
from nmtkit.model.kernels.cross_entropy import CrossEntropy, smoothed_cross_entropy
from nmtkit.storage.checkpoint import Snapshot, write_checkpoint
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training import checkpointing, objective
from nmtkit.training.run import train
from nmtkit.training.state import TrainState
from tests.launching import parameters
from tests.messages import refuses
from tests.ranks import (
    DONE,
    NUM_UPDATES,
    RankEnd,
    from_launcher,
    once,
    recipe_of,
    run_ranks,
    stop_after_saving,
    train_on,
)
from tests.tiny import prepared, tiny_directions, tiny_linked_dataset, tiny_subword_dataset
from tests.training import last_update, logged, with_updates


def records(run: Path, event: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record[name] for name in names) for record in logged(run, event)]


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run of one process with four micro-batches per update."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert train_on(1, recipe_of(dropout=0.1, micro_batches=4), data, run) == [DONE]
    return run


def assert_same_model(run: Path, whole: Path) -> None:
    assert last_update(run) == last_update(whole)
    torch.testing.assert_close(parameters(run), parameters(whole), rtol=0, atol=1e-9)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_any_number_of_ranks_trains_the_same_model(
    size: int, data: Path, whole: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=4)
    if size == 3:  # which would begin with six, and so continues with a run that has four
        assert train_on(1, with_updates(recipe, 1), data, tmp_path) == [DONE]
    assert train_on(size, recipe, data, tmp_path) == [DONE] * size
    assert_same_model(tmp_path, whole)


def test_without_dropout_the_number_of_micro_batches_does_not_matter_either(
    data: Path, tmp_path: Path
) -> None:
    for size in (1, 2, 4):
        run = tmp_path / str(size)
        assert train_on(size, recipe_of(0.0, size, max_updates=8), data, run) == [DONE] * size
    for size in (2, 4):
        assert_same_model(tmp_path / str(size), tmp_path / "1")


@pytest.mark.parametrize(
    "settings",
    [
        {"ema_decay": 0.9},
        {"schedule": "schedule-free", "learning_rate": 0.01, "learning_rate_scale": 1.0},
    ],
)
def test_the_average_is_the_same_on_any_number_of_ranks_and_continues(
    settings: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=2, max_updates=8)
    recipe = replace(recipe, training=replace(recipe.training, **settings))
    assert train_on(1, recipe, data, tmp_path / "1") == [DONE]
    for updates in (4, 8):
        ends = train_on(2, with_updates(recipe, updates), data, tmp_path / "2")
        assert ends == [DONE] * 2
    assert_same_model(tmp_path / "2", tmp_path / "1")


def test_samples_are_the_same_on_any_number_of_ranks_and_micro_batches(
    tmp_path: Path,
) -> None:
    data = tiny_subword_dataset(tmp_path)
    for size, micro_batches in ((1, 1), (2, 2), (3, 6)):
        recipe = recipe_of(dropout=0.0, micro_batches=micro_batches)
        training = replace(
            recipe.training,
            subword_sampling="both",
            subword_alpha=0.5,
            noise="join-lines=0.5,typo=0.5",
        )
        recipe = replace(recipe, training=training)
        for updates in (3, 6):  # and when a run continues
            ends = train_on(size, with_updates(recipe, updates), data, tmp_path / str(size))
            assert ends == [DONE] * size
    for size in (2, 3):
        assert_same_model(tmp_path / str(size), tmp_path / "1")
    counts = [
        records(tmp_path / str(size), "training", "num_source_tokens", "num_target_tokens")
        for size in (1, 2, 3)
    ]
    assert counts[0] == counts[1] == counts[2]


def test_guided_alignment_is_the_same_on_any_number_of_ranks(tmp_path: Path) -> None:
    data = tiny_linked_dataset(tmp_path)
    for size in (1, 3):
        recipe = recipe_of(dropout=0.0, micro_batches=6)
        training = replace(recipe.training, guided_alignment_weight=0.5, subword_sampling="both")
        recipe = replace(recipe, training=training)
        for updates in (7, 10):
            ends = train_on(size, with_updates(recipe, updates), data, tmp_path / str(size))
            assert ends == [DONE] * size
    assert_same_model(tmp_path / "3", tmp_path / "1")
    for name in ("alignment_loss", "loss"):
        found = [records(tmp_path / str(n), "training", name)[-1][0] for n in (1, 3)]
        assert found[1] == pytest.approx(found[0], rel=1e-6)
    scores = [records(tmp_path / str(n), "validation", "scores")[-1][0] for n in (1, 3)]
    assert scores[0]["aer"] == scores[1]["aer"]


def test_a_request_that_comes_after_the_last_update_ends_all_alike(
    data: Path, tmp_path: Path
) -> None:
    def work(rank: int) -> None:
        if rank == 0:
            stop_after_saving()
        train(recipe_of(dropout=0.1, micro_batches=2, max_updates=5), data, tmp_path)

    first, second = run_ranks(2, work)
    assert (first.exit_code, second) == (75, RankEnd(75, ""))
    assert "stopped by SIGTERM after update 5, which is saved" in first.message


def test_ranks_that_cannot_reach_each_other_report_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in from_launcher(RANK="1").items():
        monkeypatch.setenv(name, value)
    recipe = recipe_of(dropout=0.1, micro_batches=2)
    recipe = replace(recipe, ranks=replace(recipe.ranks, rank_timeout=1 / 60))
    with refuses(LostRankError, "rank 1 127.0.0.1", recorded=False):
        train(recipe, data, tmp_path)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "MASTER_PORT"])
def test_malformed_variables_of_a_launcher_are_refused(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in from_launcher(**{name: "x"}).items():
        monkeypatch.setenv(variable, value)
    with refuses(ConfigError, f"{name} x; torchrun"):
        train(recipe_of(dropout=0.1, micro_batches=2), data, tmp_path)


def test_in_single_precision_gradients_and_losses_agree_to_rounding(
    data: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=4, max_updates=8)
    for size in (1, 4):
        assert train_on(size, recipe, data, tmp_path / str(size), torch.float32) == [DONE] * size
    one, four = (records(tmp_path / str(n), "training", "gradient_norm", "loss") for n in (1, 4))
    assert four[0][0] == pytest.approx(one[0][0], rel=1e-5)
    assert [loss for _, loss in four] == pytest.approx([loss for _, loss in one], rel=1e-4)


def test_ranks_see_the_same_in_validation_as_one_process(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    assert train_on(2, recipe_of(0.1, micro_batches=4), data, tmp_path) == [DONE] * 2
    found, expected = (
        records(run, "validation", "update", "samples", "nll", "scores")
        for run in (tmp_path, whole)
    )
    assert len(expected) == 2
    assert found == [
        (update, samples, pytest.approx(nll, rel=1e-9), pytest.approx(scores, rel=1e-9))
        for update, samples, nll, scores in expected
    ]
    assert all(len(samples) == 2 for _, samples, _, _ in expected)


def test_each_direction_is_validated_the_same_by_three_ranks(tmp_path: Path) -> None:
    prepared(tiny_directions(tmp_path), tmp_path / "data")
    recipe = with_updates(recipe_of(dropout=0.0, micro_batches=3), 6)
    recipe = replace(recipe, training=replace(recipe.training, sampling_temperature=5))
    for size in (1, 3):
        run = tmp_path / str(size)
        assert train_on(size, recipe, tmp_path / "data", run) == [DONE] * size
    ((one,), *_), ((three,), *_) = (
        records(tmp_path / name, "validation", "scores") for name in ("1", "3")
    )
    assert {"nll:en-de", "bleu:en-nl"} <= one.keys()
    assert three == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize("size", [1, 3])
def test_any_number_of_ranks_stores_the_same_lines_of_validations(
    size: int, data: Path, tmp_path: Path, whole: Path
) -> None:
    for updates in (13, NUM_UPDATES):
        recipe = with_updates(recipe_of(0.1, micro_batches=4), updates)
        assert train_on(size, recipe, data, tmp_path) == [DONE] * size
    found, expected = (RunFolder(run).read_validation_lines() for run in (tmp_path, whole))
    assert found.keys() == expected.keys() == {"bleu"}
    assert found == expected


def test_a_run_continues_with_any_number_of_ranks(data: Path, whole: Path, tmp_path: Path) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=4)
    for size, updates in ((4, 3), (1, 7), (2, 8), (3, 13), (4, NUM_UPDATES)):
        ends = train_on(size, with_updates(recipe, updates), data, tmp_path)
        assert ends == [DONE] * size
    assert_same_model(tmp_path, whole)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("size", [3, 4])
def test_a_resumed_run_has_the_bits_of_the_uninterrupted_one(
    size: int, data: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=4)
    for run, ends in (("whole", (6,)), ("resumed", (2, 3, 6))):
        for updates in ends:
            done = train_on(size, with_updates(recipe, updates), data, tmp_path / run)
            assert done == [DONE] * size
    assert torch.equal(parameters(tmp_path / "resumed"), parameters(tmp_path / "whole"))


def test_more_ranks_than_micro_batches_are_refused(data: Path, tmp_path: Path) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=2, max_updates=1)
    assert train_on(1, recipe, data, tmp_path) == [DONE]
    first, *others = train_on(3, with_updates(recipe, 2), data, tmp_path)
    assert first.exit_code == 2
    assert (
        "of this run have 2 micro-batches, too few for 3 ranks; continue with at most 2 ranks"
        in first.message
    )
    assert others == [RankEnd(2, "")] * 2


def test_an_error_of_rank_0_is_reported_once_and_ends_all(data: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"not a run")
    first, second = train_on(2, recipe_of(0.1, micro_batches=2), data, tmp_path)
    assert first.exit_code == 2
    assert "is not the folder of a run" in first.message
    assert second == RankEnd(2, "")


def test_a_save_that_fails_on_rank_0_disturbs_the_training_of_no_rank(
    data: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(run: RunFolder, snapshot: Snapshot) -> None:
        if snapshot.update == 5:
            raise ResourceError("the disk is full")
        write_checkpoint(run, snapshot)

    monkeypatch.setattr(checkpointing, "write_checkpoint", fail_once)
    assert train_on(2, recipe_of(dropout=0.1, micro_batches=4), data, tmp_path) == [DONE] * 2
    folders = [tmp_path / "checkpoints" / f"{update:08}" for update in (5, 10)]
    assert [folder.exists() for folder in folders] == [False, True]
    assert_same_model(tmp_path, whole)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("signalled", "number"),
    [(0, signal.SIGTERM), (1, signal.SIGTERM), (1, signal.SIGUSR1), (1, signal.SIGINT)],
)
def test_a_signal_to_one_rank_stops_all_after_the_same_update(
    signalled: int, number: signal.Signals, data: Path, whole: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=4)

    def stop(rank: int, update: int) -> None:
        if rank == signalled and update == 8:
            signal.raise_signal(number)

    code = 130 if number is signal.SIGINT else 75
    first, second = train_on(2, recipe, data, tmp_path, hook=once(stop))
    assert first.exit_code == second.exit_code == code
    assert f"stopped by {number.name} after update 7, which is saved" in first.message
    assert second.message == ""
    assert train_on(2, recipe, data, tmp_path) == [DONE] * 2
    assert_same_model(tmp_path, whole)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_rank_that_dies_is_named_and_nothing_is_lost_beyond_the_last_checkpoint(
    lost: int, data: Path, whole: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.1, micro_batches=4)

    def die(rank: int, update: int) -> None:
        if rank == lost and update == 9:
            os.kill(os.getpid(), signal.SIGKILL)

    ends = train_on(2, recipe, data, tmp_path, hook=die)
    assert ends[lost].exit_code == -signal.SIGKILL
    assert ends[1 - lost].exit_code == 7
    # The first rank keeps what all know of each other where no launcher does.
    name = "rank 0, or the launcher," if lost == 0 else "rank 1"
    assert f"{name} was lost in update" in ends[1 - lost].message
    assert train_on(2, recipe, data, tmp_path) == [DONE] * 2
    assert_same_model(tmp_path, whole)


def test_a_gradient_that_is_not_finite_on_one_rank_skips_the_update_on_all(
    data: Path, tmp_path: Path
) -> None:
    sixth = iter([False] * 5 + [True] + [False] * 100)

    def compute_or_overflow(*arguments: Any) -> CrossEntropy:
        cross_entropy, nll = smoothed_cross_entropy(*arguments)
        return CrossEntropy(cross_entropy * (math.inf if next(sixth) else 1), nll)

    def work(rank: int) -> None:
        if rank == 1:
            vars(objective)["smoothed_cross_entropy"] = compute_or_overflow
        train(recipe_of(dropout=0.1, micro_batches=4, max_updates=6), data, tmp_path)

    assert run_ranks(2, work) == [DONE] * 2
    skipped = [number for (number,) in records(tmp_path, "training", "skipped_updates")]
    assert skipped[-1] == 1
    assert skipped[0] == 0


def test_ranks_with_different_weights_are_an_error(data: Path, tmp_path: Path) -> None:
    step = TrainState.step

    def step_wrongly(self: TrainState, learning_rate: float, is_skipped: Tensor) -> None:
        step(self, learning_rate, is_skipped)
        if self.progress.update == 3:
            next(self.model.parameters()).data.add_(1e-3)

    def work(rank: int) -> None:
        if rank == 1:
            TrainState.step = step_wrongly  # type: ignore[method-assign]
        train(recipe_of(dropout=0.1, micro_batches=2), data, tmp_path)

    first, second = run_ranks(2, work)
    assert (first.exit_code, second) == (7, RankEnd(7, ""))
    assert "the weights of rank 1 differ from rank 0's after update 5" in first.message


def test_a_rank_out_of_memory_ends_all_and_the_next_start_has_more_micro_batches(
    data: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(dropout=0.0, micro_batches=2)

    def run_out(rank: int, update: int) -> None:
        if rank == 1 and update == 9:
            raise torch.OutOfMemoryError("no room")

    first, second = train_on(2, recipe, data, tmp_path / "cut", hook=once(run_out))
    assert (first, second.exit_code) == (RankEnd(5, ""), 5)
    assert (
        "update=9 did not fit into memory; updates have 4 micro-batches from here on"
        in second.message
    )
    assert train_on(2, recipe, data, tmp_path / "cut") == [DONE] * 2
    assert train_on(1, recipe, data, tmp_path / "uncut") == [DONE]
    assert_same_model(tmp_path / "cut", tmp_path / "uncut")


def test_one_process_out_of_memory_continues_with_more_micro_batches(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = recipe_of(dropout=0.0, micro_batches=1)
    train(recipe, data, tmp_path / "uncut")

    forward = objective.Objective.forward

    def forward_few(
        self: objective.Objective, batch: Batch, *counts: Mapping[str, int]
    ) -> objective.Losses:
        if batch.source.layout.num_sentences > 2 and self.training:
            raise torch.OutOfMemoryError("no room")
        return forward(self, batch, *counts)

    monkeypatch.setattr(objective.Objective, "forward", forward_few)
    train(recipe, data, tmp_path / "cut")
    assert (
        "did not fit into memory; updates have 4 micro-batches from here on"
        in capsys.readouterr().err
    )
    uncut, cut = (records(tmp_path / name, "training", "loss") for name in ("uncut", "cut"))
    assert [loss for (loss,) in cut] == pytest.approx([loss for (loss,) in uncut], rel=1e-4)
    cuts = json.loads((tmp_path / "cut" / "micro_batches.json").read_text("utf-8"))
    assert re.fullmatch(r"2,4", ",".join(str(one["micro_batches"]) for one in cuts))
