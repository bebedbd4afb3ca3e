"""Averaging the last checkpoints of a run, or the best; their mean and the best checkpoint."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from nmtkit.config.schema import TrainRecipe
from nmtkit.config.training import ValidationConfig
from nmtkit.data.binary import Dataset
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.counting import WorkReporter
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import ValidationRecord
from nmtkit.storage.checkpoint import write_checkpoint
from nmtkit.storage.durable import remove
from nmtkit.storage.run_folder import RunFolder
from nmtkit.training.run import train
from nmtkit.training.selection import (
    best_checkpoints,
    choose,
    compare_with_best,
    last_checkpoints,
    open_validation_set,
)
from nmtkit.training.validation import ShowProgress, Validation, Validator
from tests.messages import has_word, refuses
from tests.snapshots import tiny_model_folder, tiny_run, tiny_snapshot, tiny_tensors
from tests.tiny import TRAIN_LINES, silent, tiny_dataset, tiny_train_recipe, with_settings

NUM_UPDATES = 6
RECIPE = tiny_train_recipe(
    NUM_UPDATES, 0.0, keep=NUM_UPDATES, validate_every=NUM_UPDATES, best_metric="bleu"
)


def updates(folders: Sequence[Path]) -> list[int]:
    return [int(folder.name) for folder in folders]


# -------------------------------------------------------------------------------------- the last


def test_the_newest_checkpoint_and_the_scheduled_ones_before_it_are_taken(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    for update in range(1, 8):
        write_checkpoint(run, tiny_snapshot(update, is_scheduled=update in (1, 3, 4, 6)))
    assert updates(last_checkpoints(tmp_path / "run", 1)) == [7]
    assert updates(last_checkpoints(tmp_path / "run", 4)) == [3, 4, 6, 7]


@pytest.mark.parametrize(
    ("saved", "taken"),
    [
        ((10, 20, 30, 40, 50, 60, 70, 80), [40, 50, 60, 70, 80]),
        ((10, 20, 30, 40), [20, 30, 40]),
        ((10, 20, 39), [20, 39]),
        ((10, 20, 41), [41]),
        ((3,), [3]),
    ],
)
def test_without_a_number_at_most_five_are_taken_from_the_second_half(
    saved: Sequence[int], taken: list[int], tmp_path: Path
) -> None:
    tiny_run(tmp_path / "run", *saved)
    assert updates(last_checkpoints(tmp_path / "run", None)) == taken


@pytest.mark.parametrize(
    ("last", "nlls", "words"),
    [
        (3, (9.0, 4.0, 4.0, 3.97), []),
        (3, (9.0, 4.0, 4.0, 3.9), ["nll 4.0000 2 3.9000 4"]),  # it still falls by more than 1 %
        (3, (9.0, 4.0, 3.0, 5.0), []),  # it rises: past its best, training moves little
        (3, (9.0, math.inf, 3.0, 4.0), ["nll inf 2 4.0000 4"]),
        (4, (4.0, 4.0, 4.0, 4.0), ["1 half 4"]),
        (1, (4.0, 4.0, 4.0, 3.0), ["one --save-every"]),
    ],
)
def test_a_mean_that_may_be_worse_is_a_warning(
    last: int, nlls: Sequence[float], words: Sequence[str], tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4)
    for update, nll in enumerate(nlls, 1):
        log_validation(run, update, nll, bleu=0.0)
    warned: list[str] = []
    choose(run.path, last, None, silent, warned.append)
    assert len(warned) == len(words)
    for warning, expected in zip(warned, words, strict=True):
        assert all(has_word(warning, word) for word in expected.split()), warning


@pytest.mark.parametrize("last", [1, 2])
def test_the_mean_of_averages_is_a_warning_that_names_the_run(last: int, tmp_path: Path) -> None:
    run = RunFolder.create_or_open(tmp_path / "run")
    recipe = tiny_train_recipe(
        1, 0.0, schedule="schedule-free", learning_rate=0.01, learning_rate_scale=1.0
    )
    for update in (1, 2):
        snapshot = replace(tiny_snapshot(update, is_scheduled=True), recipe=recipe)
        write_checkpoint(run, snapshot)
    warned: list[str] = []
    choose(run.path, last, None, silent, warned.append)
    assert [f"translate with {run.path}" in one for one in warned] == [True] * (last - 1)


@pytest.mark.parametrize("validated", [(1, 4), (1, 5), (2, 4)])
def test_validations_around_the_checkpoints_show_that_nll_falls(
    validated: Sequence[int], tmp_path: Path
) -> None:
    run = tiny_run(tmp_path / "run", 1, 2, 3, 4, 5)
    for update, nll in zip(validated, (3.1, 2.8), strict=True):
        log_validation(run, update, nll, bleu=0.0)
    warned: list[str] = []
    choose(run.path, 3, None, silent, warned.append)
    assert any("--data" in warning for warning in warned)


# -------------------------------------------------------------------------------------- the best

# What the validations of a run say, one after every update.
LOSSES = (5.0, 2.0, 4.0, 2.0, 3.0)
BLEUS = (10.0, 30.0, 50.0, 40.0, 50.0)


def validated_run(
    path: Path, metric: str = "nll", losses: Sequence[float] = LOSSES, unscheduled: int = 0
) -> RunFolder:
    """Make a run with a checkpoint per update, all except one by --save-every."""
    run = RunFolder.create_or_open(path)
    recipe = TrainRecipe(validation=ValidationConfig(best_metric=metric))
    for update, (loss, bleu) in enumerate(zip(losses, BLEUS, strict=True), 1):
        snapshot = tiny_snapshot(update, is_scheduled=update != unscheduled)
        write_checkpoint(run, replace(snapshot, recipe=recipe))
        log_validation(run, update, loss, bleu)
    return run


def log_validation(run: RunFolder, update: int, loss: float, bleu: float) -> None:
    MetricsLog(run.metrics_path).append(
        ValidationRecord(
            update=update,
            nll=loss,
            perplexity=math.exp(loss),
            scores={"bleu": bleu},
            signatures={},
            is_best=False,
            took_s=0.0,
            samples=[],
        )
    )


@pytest.mark.parametrize(
    ("metric", "count", "best"),
    [
        ("nll", 1, [2]),  # of equal ones the earlier
        ("nll", 2, [2, 4]),
        ("nll", 3, [2, 4, 5]),
        ("nll", 5, [1, 2, 3, 4, 5]),
        ("bleu", 1, [3]),
        ("bleu", 2, [3, 5]),
        ("bleu", 4, [2, 3, 4, 5]),
    ],
)
def test_the_best_checkpoints_by_the_runs_metric_come_oldest_first(
    metric: str, count: int, best: list[int], tmp_path: Path
) -> None:
    validated_run(tmp_path, metric)
    assert updates(best_checkpoints(tmp_path, count, pytest.fail)) == best


def test_the_best_checkpoint_may_be_one_that_save_every_does_not_ask_for(tmp_path: Path) -> None:
    (best,) = best_checkpoints(validated_run(tmp_path / "one").path, 1, pytest.fail)
    (found,) = best_checkpoints(
        validated_run(tmp_path / "other", unscheduled=int(best.name)).path, 1, pytest.fail
    )
    assert found.name == best.name


def test_deleted_and_unvalidated_checkpoints_are_not_among_the_best(tmp_path: Path) -> None:
    run = validated_run(tmp_path)
    for update in (2, 4):
        remove(run.model_dir(update))
    write_checkpoint(run, tiny_snapshot(6, is_scheduled=True))
    reported: list[str] = []
    assert updates(best_checkpoints(tmp_path, 3, reported.append)) == [1, 3, 5]
    assert reported == [
        f"{tmp_path}: validation was better after updates 2, 4, whose checkpoints were not kept; "
        "train with --keep-best 3"
    ]


def test_a_loss_that_was_not_finite_is_the_worst(tmp_path: Path) -> None:
    validated_run(tmp_path, losses=(math.nan, 9.0, math.inf, 8.0, 7.0))
    assert updates(best_checkpoints(tmp_path, 3, pytest.fail)) == [2, 4, 5]


def test_too_few_validated_checkpoints_is_an_error_with_their_number(
    tmp_path: Path,
) -> None:
    run = validated_run(tmp_path / "run")
    write_checkpoint(run, tiny_snapshot(6, is_scheduled=True))
    with refuses(ConfigError, "run 5 6; --validate-every --keep-best"):
        best_checkpoints(tmp_path / "run", 6, pytest.fail)


def test_a_run_without_checkpoints_has_no_mean(tmp_path: Path) -> None:
    tiny_run(tmp_path / "run")
    for last, best in ((None, None), (1, None), (None, 1)):
        with refuses(DamagedError, "run; nmtkit train"):
            choose(tmp_path / "run", last, best, pytest.fail, pytest.fail)


@pytest.mark.parametrize(
    "choose", [last_checkpoints, partial(best_checkpoints, report=pytest.fail)]
)
def test_a_folder_that_is_no_run_is_refused(
    choose: Callable[[Path, int], list[Path]], tmp_path: Path
) -> None:
    folder = tiny_model_folder(tmp_path / "model", 1, tiny_tensors(1))
    for path in (folder, tmp_path / "missing"):
        with refuses(ConfigError, f"{path}; --last --best --data"):
            choose(path, 1)


# ----------------------------------------------------------------- the mean and the best checkpoint


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with a checkpoint per update; the last is validated."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(RECIPE, data, folder)
    return folder


def fake_validations(monkeypatch: pytest.MonkeyPatch, *results: tuple[float, float]) -> None:
    """Have validations return these losses and BLEUs."""
    remaining = iter(results)

    def validate(
        _self: Validator, _is_stopping: Callable[[], bool], _show: ShowProgress
    ) -> Validation:
        loss, bleu = next(remaining)
        return Validation(loss, {"bleu": bleu}, {"bleu": "signed"})

    monkeypatch.setattr(Validator, "validate", validate)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_best_checkpoint_scores_as_in_training(
    precision: str, data: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    run = tmp_path / "run"
    train(with_settings(RECIPE, precision=precision), data, run)
    mean = RunFolder(run).model_dir(NUM_UPDATES)  # of one checkpoint
    compare_with_best(run, mean, Dataset.open(data), WorkReporter(said.append))
    (record,) = MetricsLog(run / "metrics.jsonl").validations()
    result = (
        f"nll={record.nll:.4f} perplexity={record.perplexity:.2f} bleu={record.scores['bleu']:.2f}"
    )
    assert said == [
        *("validating the mean", f"mean: {result}"),
        *(f"validating the checkpoint {NUM_UPDATES}", f"checkpoint {NUM_UPDATES}: {result}"),
        f"by bleu the mean is at least as good; translate with {mean}",
    ]


@pytest.mark.parametrize(
    ("mean", "single", "is_better"),
    [
        ((3.0, 20.0), (2.0, 10.0), True),  # by BLEU, the run's metric
        ((2.0, 10.0), (3.0, 20.0), False),
        ((2.0, 20.0), (3.0, 20.0), True),  # of equal BLEU the lower nll
        ((3.0, 20.0), (2.0, 20.0), False),
        ((2.0, 20.0), (2.0, 20.0), True),
    ],
)
def test_the_better_of_mean_and_best_checkpoint_is_advised(
    mean: tuple[float, float],
    single: tuple[float, float],
    is_better: bool,
    run: Path,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_validations(monkeypatch, mean, single)
    said: list[str] = []
    out = run / "checkpoints/00000001"
    compare_with_best(run, out, Dataset.open(data), WorkReporter(said.append))
    assert said[-1].endswith(f"translate with {out}") == is_better
    assert (f"translate with {run}, average fewer" in said[-1]) != is_better


@pytest.mark.parametrize(
    ("train_lines", "keys"),
    [((*TRAIN_LINES, "i j"), "vocabulary"), (TRAIN_LINES[::-1], "training text")],
)
def test_the_dataset_of_another_run_is_refused(
    train_lines: Sequence[str], keys: str, run: Path, tmp_path: Path
) -> None:
    other = tiny_dataset(tmp_path, train_lines)
    with refuses(DamagedError, f"data {keys} /00000006"):
        open_validation_set(run, [RunFolder(run).model_dir(6)], other)


def test_a_dataset_that_is_not_there_is_an_error(run: Path, tmp_path: Path) -> None:
    with refuses(DamagedError, "missing"):
        open_validation_set(run, [], tmp_path / "missing")
