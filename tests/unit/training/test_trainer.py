"""How a run stops and resumes, and on what its results depend."""

import itertools
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from nmtkit.config.schema import TrainRecipe, fields_of
from nmtkit.errors import ConfigError, DamagedError, DivergedError, StoppedError
from nmtkit.storage.checkpoint import Snapshot, write_checkpoint
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training import checkpointing, fit_memory
from nmtkit.training import trainer as training
from nmtkit.training.micro_batches import micro_batch_seed
from nmtkit.training.optimizer import SCHEDULES
from nmtkit.training.run import train
from nmtkit.training.trainer import Trainer
from nmtkit.training.validation import ShowProgress, Validation, Validator
from tests.doubles import Clock
from tests.messages import refuses
from tests.tiny import (
    TRAIN_LINES,
    VALID_LINES,
    tiny_dataset,
    tiny_linked_dataset,
    tiny_train_recipe,
    with_settings,
)
from tests.training import (
    assert_resumes,
    assert_same_tensors,
    last_model,
    last_update,
    logged,
    with_updates,
)

pytestmark = pytest.mark.sampled(every=3)

NUM_UPDATES = 9


def poisoned_with(value: float) -> Callable[..., torch.Tensor]:
    """Return a `get_total_norm` that finds a value among the gradients."""
    norm = torch.nn.utils.get_total_norm

    def norm_poisoned(gradients: Sequence[torch.Tensor], foreach: bool) -> torch.Tensor:
        gradients[0].fill_(value)
        return norm(gradients, foreach=foreach)

    return norm_poisoned


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "schedule": "cosine",
            "learning_rate": 0.01,
            "learning_rate_scale": 1.0,
            "decay_updates": NUM_UPDATES - 1,
            "final_learning_rate": 0.001,
            "weight_decay": 0.5,
        },
    ],
)
def test_a_run_resumed_after_every_update_equals_the_uninterrupted_one(
    changes: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    recipe = tiny_train_recipe(max_updates=NUM_UPDATES, dropout=0.1, **changes)
    assert_resumes(recipe, data, tmp_path, range(1, NUM_UPDATES + 1))
    updates = [one["update"] for one in logged(tmp_path / "parts", "training")]
    assert updates == [*range(1, NUM_UPDATES + 1)]
    epochs = [one["epoch"] for one in logged(tmp_path / "parts") if "epoch" in one]
    assert len(set(epochs)) > 2  # sessions end before, at and after the end of an epoch


def test_a_resumed_run_is_guided_by_links_as_the_uninterrupted_one(tmp_path: Path) -> None:
    data = tiny_linked_dataset(tmp_path)
    settings: dict[str, Any] = {"ema_decay": 0.9, "noise": "join-lines=0.5"}
    recipe = tiny_train_recipe(6, 0.1, guided_alignment_weight=0.5, **settings)
    assert_resumes(recipe, data, tmp_path, (2, 3, 6))
    train(with_settings(recipe, guided_alignment_weight=0.0), data, tmp_path / "plain")
    losses = {
        name: [one.get("alignment_loss") for one in logged(tmp_path / name) if "loss" in one]
        for name in ("whole", "parts", "plain")
    }
    assert losses["whole"][-1] == losses["parts"][-1] is not None
    assert losses["plain"][-1] is None
    heads = [(tmp_path / name / "config.toml").read_text() for name in ("whole", "plain")]
    assert ["alignment_layer = 1" in one for one in heads] == [True, False]


def test_links_and_layers_that_are_missing_are_refused(tmp_path: Path, data: Path) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0, guided_alignment_weight=0.1)
    keys = "[training.guided_alignment_weight] 0.1 data; preprocess --alignments"
    with refuses(ConfigError, keys):
        train(recipe, data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_validation_does_not_touch_training(data: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=NUM_UPDATES, dropout=0.1)
    train(recipe, data, tmp_path / "with")
    quiet = tiny_train_recipe(max_updates=NUM_UPDATES, dropout=0.1, validate_every=0)
    train(quiet, data, tmp_path / "without")
    assert_same_tensors(last_model(tmp_path / "with"), last_model(tmp_path / "without"))


def test_a_stop_request_drops_the_unfinished_update_and_the_run_resumes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_train_recipe(max_updates=NUM_UPDATES, dropout=0.1)
    train(recipe, data, tmp_path / "whole")
    calls: list[int] = []

    def seed_and_stop(seed: int, update: int, number: int, initial: int) -> int:
        calls.append(update)
        if len(calls) == 6:  # in the middle of an update of several micro-batches
            signal.raise_signal(signal.SIGTERM)
        return micro_batch_seed(seed, update, number, initial)

    monkeypatch.setattr(training, "micro_batch_seed", seed_and_stop)
    with refuses(StoppedError, "SIGTERM update 3"):
        train(recipe, data, tmp_path / "parts")
    train(recipe, data, tmp_path / "parts")
    assert_same_tensors(last_model(tmp_path / "whole"), last_model(tmp_path / "parts"))


def test_a_finished_run_stays_unchanged(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(max_updates=2, dropout=0.0)
    train(recipe, data, tmp_path)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "checkpoints").rglob("*")}
    train(recipe, data, tmp_path)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "checkpoints").rglob("*")}
    assert "already complete after update 2" in capsys.readouterr().err


def test_a_run_refuses_other_fixed_settings_and_names_them(data: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    train(recipe, data, tmp_path)
    with refuses(ConfigError, "label_smoothing 0.1 0.2; --out"):
        train(with_settings(recipe, label_smoothing=0.2), data, tmp_path)


def test_a_run_refuses_other_data(data: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(max_updates=1, dropout=0.0)
    train(recipe, data, tmp_path / "run")
    (tmp_path / "corpus").mkdir()
    other = tiny_dataset(tmp_path / "corpus", TRAIN_LINES[1:])
    with refuses(DamagedError, "run; --out"):
        train(recipe, other, tmp_path / "run")


def test_learned_positions_must_cover_the_longest_sentence(data: Path, tmp_path: Path) -> None:
    recipe = tiny_train_recipe(1, 0.0, positions="learned", max_positions=5)
    with refuses(ConfigError, "6 5; --max-positions"):
        train(recipe, data, tmp_path)


def test_gradients_that_stay_infinite_end_the_run_and_keep_the_last_checkpoint(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_train_recipe(max_updates=2, dropout=0.0)
    train(recipe, data, tmp_path)
    before = last_model(tmp_path)
    monkeypatch.setattr(torch.nn.utils, "get_total_norm", poisoned_with(float("inf")))
    with refuses(DivergedError, "10 update 12; --out --warmup-updates --clip-norm"):
        train(with_updates(recipe, 40), data, tmp_path)
    assert_same_tensors(before, last_model(tmp_path))


def test_epochs_stop_a_run_at_the_end_of_the_corpus(data: Path, tmp_path: Path) -> None:
    train(tiny_train_recipe(max_updates=1000, dropout=0.0, max_epochs=1), data, tmp_path)
    epochs = [r["epoch"] for r in logged(tmp_path) if "epoch" in r]
    assert max(int(str(e)) for e in epochs) <= 2
    assert 1 < len(epochs) < 1000


def test_the_updates_before_a_checkpoint_are_logged(data: Path, tmp_path: Path) -> None:
    train(tiny_train_recipe(NUM_UPDATES, 0.1, log_every=1000, save_every=4), data, tmp_path)
    logged_updates = [one["update"] for one in logged(tmp_path, "training")]
    assert logged_updates == [4, 8, NUM_UPDATES]


def test_validation_uses_the_micro_batches_found_and_the_search_is_in_no_rate(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_tokens: list[int] = []
    validate, clock = Validator.validate, Clock()

    def find_slowly(*_: object) -> int:
        clock.now += 1000
        return 2

    def note_and_validate(
        self: Validator, is_stopping: Callable[[], bool], show: ShowProgress
    ) -> Validation | None:
        batch_tokens.append(self.batch_tokens)
        return validate(self, is_stopping, show)

    def tick() -> float:
        clock.now += 0.001
        return clock.now

    monkeypatch.setattr(fit_memory, "fitting_micro_batches", find_slowly)
    monkeypatch.setattr(Validator, "validate", note_and_validate)
    recipe = tiny_train_recipe(max_updates=4, dropout=0.1, max_tokens=0)
    train(recipe, data, tmp_path, tick)
    assert batch_tokens == [recipe.training.update_tokens // 2]
    first, *_, last = logged(tmp_path, "training")
    assert isinstance(first["updates_per_second"], float)
    assert first["updates_per_second"] > 1
    assert isinstance(last["elapsed_s"], float)
    assert last["elapsed_s"] < 1


DUMMY = "step"


@pytest.fixture
def rates_of_adam() -> Iterator[list[list[float]]]:
    """Watch the learning rates of each group of parameters at each update."""
    used: list[list[float]] = []

    def watch(optimizer: torch.optim.Optimizer, *_: object) -> None:
        used.append([group["lr"] for group in optimizer.param_groups])

    with register_optimizer_step_pre_hook(watch):
        yield used


@pytest.mark.parametrize("schedule", [*SCHEDULES, DUMMY])
def test_every_schedule_trains_and_a_new_entry_needs_no_other_edit(
    schedule: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rates_of_adam: list[list[float]],
) -> None:
    monkeypatch.setitem(SCHEDULES, DUMMY, lambda update, _size, _config: 0.5**update)
    settings: dict[str, Any] = {"learning_rate": 0.01, "decay_updates": 6, "weight_decay": 0.1}
    recipe = tiny_train_recipe(6, 0.0, schedule=schedule, **settings)
    train(recipe, data, tmp_path)
    rates = [one["learning_rate"] for one in logged(tmp_path) if "learning_rate" in one]
    size = recipe.model.model_size
    assert rates == [SCHEDULES[schedule](update, size, recipe.training) for update in range(1, 7)]
    # Without a schedule, the weights are averages of what Adam changes.
    factor = 1 - recipe.training.adam_beta1 if schedule == "schedule-free" else 1
    assert rates_of_adam == [[rate * factor] * 2 for rate in rates]  # of matrices, and of others


def test_the_choices_of_the_schedule_are_those_of_the_table() -> None:
    assert fields_of(TrainRecipe)["schedule"].choices == tuple(SCHEDULES)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("save_minutes", [0.1, 0.15, 0.25])
def test_a_checkpoint_is_never_saved_before_its_update_is_logged(
    save_minutes: float, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a save falls due between two readings of the clock, each a second apart."""
    every: dict[str, Any] = {"save_every": 1000, "log_every": 1000}
    recipe = tiny_train_recipe(40, 0.0, save_minutes=save_minutes, **every)
    saved: list[int] = []

    def write_and_note(run: RunFolder, snapshot: Snapshot) -> None:
        saved.append(snapshot.update)
        write_checkpoint(run, snapshot)

    monkeypatch.setattr(checkpointing, "write_checkpoint", write_and_note)
    seconds = itertools.count()
    train(recipe, data, tmp_path, clock=lambda: float(next(seconds)))
    assert len(saved) > 5
    assert set(saved) <= {one["update"] for one in logged(tmp_path, "training")}


@pytest.mark.parametrize("log_every", [1, 3, 100])
def test_the_first_update_of_a_session_is_reported_early_and_the_log_is_unchanged(
    log_every: int, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_train_recipe(4, 0.1, save_every=100, validate_every=0, log_every=log_every)
    train(recipe, data, tmp_path)
    updates = [*range(log_every, 4, log_every), 4]
    assert [record["update"] for record in logged(tmp_path, "training")] == updates
    reported = re.findall(r" event=training update=(\d+)/4 ", capsys.readouterr().err)
    assert list(map(int, reported)) == sorted({1, *updates})


# ------------------------------------------------------------------------ lines of the validations


def several_metrics(data: Path, run: Path, max_updates: int = NUM_UPDATES) -> None:
    metrics = {"validate_metrics": "bleu,chrf,ter", "best_metric": "ter"}
    train(tiny_train_recipe(max_updates, 0.1, validate_every=2, **metrics), data, run)


def test_the_lines_of_the_best_validation_by_each_metric_are_stored(
    data: Path, tmp_path: Path
) -> None:
    several_metrics(data, tmp_path)
    lines, records = RunFolder(tmp_path).read_validation_lines(), logged(tmp_path, "validation")
    assert set(lines) == {"bleu", "chrf", "ter"}
    for name, one in lines.items():
        scores = [record["scores"][name] for record in records]
        best = records[scores.index(min(scores) if name == "ter" else max(scores))]
        expected = best["update"], best["scores"][name], best["signatures"][name]
        assert (one.update, one.score, one.signature) == expected
        assert len(one.statistics) == len(VALID_LINES)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("stop", [2, 4, 6])
@pytest.mark.parametrize("is_log_shorter", [False, True])
def test_a_resumed_run_stores_the_lines_that_the_uninterrupted_one_does(
    stop: int, is_log_shorter: bool, data: Path, tmp_path: Path
) -> None:
    whole, resumed = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "resumed")
    several_metrics(data, whole.path)
    several_metrics(data, resumed.path, stop)
    expected = whole.validation_lines_path.read_bytes()
    if is_log_shorter:  # validations after its last checkpoint are dropped from the log
        resumed.validation_lines_path.write_bytes(expected)
    several_metrics(data, resumed.path)
    assert resumed.validation_lines_path.read_bytes() == expected


def test_lines_that_cannot_be_stored_are_reported_and_training_continues(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several_metrics(data, tmp_path, 1)
    (tmp_path / "validation_lines.json").unlink()
    (tmp_path / "validation_lines.json").mkdir()
    several_metrics(data, tmp_path)
    assert "validation_lines.json: exists and is not a file" in capsys.readouterr().err
    assert len(logged(tmp_path, "validation")) == 6


# ----------------------------------------------------------------------------------- limits of time


MANY_UPDATES = 50


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the trainer's clock; every update takes a minute of it."""
    made = Clock()
    forward_backward = Trainer._forward_backward

    def take_a_minute(self: Trainer, *arguments: Any, is_last: bool) -> torch.Tensor:
        made.now += 60 if is_last else 0
        return forward_backward(self, *arguments, is_last=is_last)

    monkeypatch.setattr(Trainer, "_forward_backward", take_a_minute)
    return made


def recipe_of_minutes(max_minutes: float, max_updates: int = MANY_UPDATES) -> TrainRecipe:
    return tiny_train_recipe(max_updates, dropout=0.0, max_minutes=max_minutes)


@pytest.mark.parametrize(("max_minutes", "updates"), [(3.0, 3), (2.5, 3), (0.1, 1)])
def test_a_run_ends_with_the_first_update_after_its_minutes(
    max_minutes: float, updates: int, data: Path, tmp_path: Path, clock: Clock
) -> None:
    train(recipe_of_minutes(max_minutes), data, tmp_path, clock)
    assert last_update(tmp_path) == updates
    assert clock.now == 1000 + 60 * updates


def test_minutes_of_all_sessions_count_and_the_time_between_them_does_not(
    data: Path, tmp_path: Path, clock: Clock
) -> None:
    train(recipe_of_minutes(5.0, max_updates=2), data, tmp_path, clock)
    clock.now += 1e6
    train(recipe_of_minutes(5.0), data, tmp_path, clock)
    assert last_update(tmp_path) == 5


def test_a_run_whose_minutes_are_over_is_complete_until_they_are_raised(
    data: Path, tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    train(recipe_of_minutes(2.0), data, tmp_path, clock)
    clock.now = 5.0  # another machine, or another boot
    capsys.readouterr()
    train(recipe_of_minutes(2.0), data, tmp_path, clock)
    assert "already complete after update 2" in capsys.readouterr().err
    train(recipe_of_minutes(4.0), data, tmp_path, clock)
    assert last_update(tmp_path) == 4
