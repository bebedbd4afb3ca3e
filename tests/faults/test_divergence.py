"""A loss that is not finite: its update changes nothing, whether or not anything is reported."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmtkit.config.schema import SearchConfig, TrainRecipe
from nmtkit.data.batch import Batch
from nmtkit.data.binary import Dataset
from nmtkit.data.sampler import Position, Sampler
from nmtkit.errors import DivergedError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import SkippedRecord
from nmtkit.training import trainer
from nmtkit.training.micro_batches import micro_batch_seed
from nmtkit.training.objective import Losses, Objective
from nmtkit.training.run import train
from nmtkit.training.state import MAX_SKIPPED_IN_A_ROW, TrainState
from tests.messages import refuses
from tests.tiny import tiny_train_recipe
from tests.training import assert_same_tensors, last_model, last_state, with_updates

NUM_UPDATES = 5
NEVER = 100


def quiet_recipe(max_updates: int) -> TrainRecipe:
    """Return a recipe of which nothing is reported, saved or validated before its end."""
    recipe = tiny_train_recipe(max_updates, dropout=0.1)
    return replace(
        recipe,
        logging=replace(recipe.logging, log_every=NEVER),
        checkpoints=replace(recipe.checkpoints, save_every=NEVER),
        validation=replace(recipe.validation, validate_every=0),
        search=SearchConfig(),
    )


def skipped(run: Path) -> list[SkippedRecord]:
    records = MetricsLog(run / "metrics.jsonl").records()
    return [record for record in records if isinstance(record, SkippedRecord)]


def third_update(data: Path, recipe: TrainRecipe) -> list[int]:
    """Return the pairs of the third update, as a sampler on its own plans it."""
    sampler = Sampler(Dataset.open(data).train, recipe.training.update_tokens, recipe.seed.seed)
    _, update = next(islice(sampler.updates(Position(0, 0, 0)), 2, None))
    return [int(pair) for pair in update.pairs]


def poison(monkeypatch: pytest.MonkeyPatch, value: float, is_bad: Callable[[int], bool]) -> None:
    """Have the loss of the last micro-batch of some updates not be finite."""
    seeded, forward = [0], Objective.forward

    def seed(seed: int, update: int, number: int, initial: int) -> int:
        seeded.append(update)
        return micro_batch_seed(seed, update, number, initial)

    def forward_poisoned(self: Objective, batch: Batch, *counts: Mapping[str, int]) -> Losses:
        losses = forward(self, batch, *counts)
        return Losses(losses.loss * (value if is_bad(seeded[-1]) else 1), losses.sums)

    monkeypatch.setattr(trainer, "micro_batch_seed", seed)
    monkeypatch.setattr(Objective, "forward", forward_poisoned)


def leave_out(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have Adam not see the gradients of an update."""
    step = TrainState.step

    def step_or_drop(self: TrainState, learning_rate: float, is_skipped: Tensor) -> None:
        is_left_out = self.progress.update == number
        self.clear_gradients() if is_left_out else step(self, learning_rate, is_skipped)

    monkeypatch.setattr(TrainState, "step", step_or_drop)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_update_that_is_not_reported_is_skipped_all_the_same(
    value: float,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = quiet_recipe(NUM_UPDATES)
    with monkeypatch.context() as patched:
        leave_out(patched, 3)
        train(recipe, data, tmp_path / "without")
    capsys.readouterr()
    with monkeypatch.context() as patched:
        poison(patched, value, lambda update: update == 3)
        train(recipe, data, tmp_path / "poisoned")
    told = capsys.readouterr().err
    assert re.search(r" update=3 skipped: its gradient norm is (nan|inf); ", told, re.M)
    assert skipped(tmp_path / "poisoned") == [
        SkippedRecord(update=3, shard=0, pairs=third_update(data, recipe))
    ]
    assert_same_tensors(last_model(tmp_path / "poisoned"), last_model(tmp_path / "without"))


def test_updates_that_stay_bad_end_the_run_where_the_last_checkpoint_is_good(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(quiet_recipe(NUM_UPDATES), data, tmp_path / "undisturbed")
    train(quiet_recipe(2), data, tmp_path / "run")
    good = last_model(tmp_path / "run")
    with monkeypatch.context() as patched:
        poison(patched, math.nan, lambda update: update > 3)
        with refuses(DivergedError, f"{NEVER - 3} update {NEVER}; --clip-norm"):
            train(quiet_recipe(NEVER), data, tmp_path / "run")
    assert_same_tensors(last_model(tmp_path / "run"), good)
    train(quiet_recipe(NUM_UPDATES), data, tmp_path / "run")
    assert_same_tensors(last_model(tmp_path / "run"), last_model(tmp_path / "undisturbed"))


def test_the_ema_counts_a_skipped_update_with_the_weights_that_it_left(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_train_recipe(max_updates=2, dropout=0.0)
    recipe = replace(recipe, training=replace(recipe.training, ema_decay=0.5))
    train(recipe, data, tmp_path)
    averaged, state = last_model(tmp_path), last_state(tmp_path)
    poison(monkeypatch, math.nan, lambda update: update == 3)
    train(with_updates(recipe, 3), data, tmp_path)
    assert_same_tensors(state, last_state(tmp_path))
    decay = (1 + 3) / (10 + 3)
    now = last_model(tmp_path)
    weights = {key.removesuffix(".weights"): w for key, w in state.items() if ".weights" in key}
    assert len(weights) > 10
    for name, weight in weights.items():
        expected = decay * averaged[name] + (1 - decay) * weight
        torch.testing.assert_close(now[name], expected, rtol=1e-5, atol=1e-7)


def test_a_checkpoint_knows_that_its_last_update_was_skipped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, math.nan, lambda update: update > 3)
    for max_updates in (3, 4, 7):
        train(quiet_recipe(max_updates), data, tmp_path)
    with refuses(DivergedError, f"{NEVER - 3} update {NEVER}; --clip-norm"):
        train(quiet_recipe(NEVER), data, tmp_path)
    assert [one.update for one in skipped(tmp_path)][:4] == [4, 5, 6, 7]


@pytest.mark.parametrize("every", [MAX_SKIPPED_IN_A_ROW, 3 * MAX_SKIPPED_IN_A_ROW])
def test_bad_updates_with_a_good_one_after_them_do_not_end_the_run(
    every: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is reported before the end, where the last update is good."""
    poison(monkeypatch, math.inf, lambda update: update % every != 0)
    train(quiet_recipe(3 * MAX_SKIPPED_IN_A_ROW), data, tmp_path)
    num_updates = 3 * MAX_SKIPPED_IN_A_ROW
    assert len(skipped(tmp_path)) == num_updates - num_updates // every


def test_a_run_that_diverges_is_validated_without_translating_and_so_is_its_resume(
    data: Path, tmp_path: Path
) -> None:
    recipe = tiny_train_recipe(NEVER, dropout=0.1)
    recipe = replace(
        recipe,
        training=replace(recipe.training, learning_rate_scale=1e25),
        validation=replace(recipe.validation, validate_every=5),
        checkpoints=replace(recipe.checkpoints, save_every=5),
    )
    for _ in range(2):
        with refuses(DivergedError, "update; --clip-norm"):
            train(recipe, data, tmp_path)
    validations = MetricsLog(tmp_path / "metrics.jsonl").validations()
    assert [(one.update, one.nll, one.scores) for one in validations] == [
        (update, math.inf, {"bleu": 0.0}) for update in range(5, validations[-1].update + 1, 5)
    ]
